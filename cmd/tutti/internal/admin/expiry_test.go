package admin

import (
	"testing"
	"time"
)

func TestExpiry(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 12, 30, 1, 5, time.FixedZone("", -3600))
	const wants = "takes a time such as 90d, 12h, 2027-01-31 or 2027-01-31T12:00:00Z, not "
	for text, tt := range map[string]struct{ want, fault string }{
		"":                          {"0001-01-01T00:00:00Z", ""},
		"90d":                       {"2026-08-02T13:30:01Z", ""},
		"1d":                        {"2026-05-05T13:30:01Z", ""},
		"36525d":                    {"2126-05-05T13:30:01Z", ""},
		"12h":                       {"2026-05-05T01:30:01Z", ""},
		"1h30m":                     {"2026-05-04T15:00:01Z", ""},
		"2027-01-31":                {"2027-01-31T00:00:00Z", ""},
		"2027-01-31T12:00:00Z":      {"2027-01-31T12:00:00Z", ""},
		"2027-01-31T12:00:00+02:00": {"2027-01-31T10:00:00Z", ""},
		"9999-12-31":                {"9999-12-31T00:00:00Z", ""},
		"9999-12-31T23:59:59-23:00": {"", "is 9999-12-31T23:59:59-23:00, which in UTC is after the year 9999"},
		"9999-12-31T23:59:59+23:00": {"9999-12-31T00:59:59Z", ""},
		"36526d":                    {"", wants + `"36526d"`},
		"d":                         {"", wants + `"d"`},
		"-1d":                       {"", wants + `"-1d"`},
		"-1h":                       {"", wants + `"-1h"`},
		"90":                        {"", wants + `"90"`},
		"tomorrow":                  {"", wants + `"tomorrow"`},
		"2027-02-30":                {"", wants + `"2027-02-30"`},
		"31.01.2027":                {"", wants + `"31.01.2027"`},
		"0d":                        {"", "is 0d, which is in the past"},
		"0s":                        {"", "is 0s, which is in the past"},
		"1ns":                       {"", "is 1ns, which is in the past"},
		"2026-05-04":                {"", "is 2026-05-04, which is in the past"},
		"2026-05-04T13:30:01Z":      {"", "is 2026-05-04T13:30:01Z, which is in the past"},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			got, err := parseExpiry(text, now)
			if tt.fault != "" {
				if err == nil || err.Error() != "--expires "+tt.fault {
					t.Errorf("got %v, %v, want the fault %q", got, err, tt.fault)
				}
				return
			}
			if err != nil || got.Format(time.RFC3339Nano) != tt.want || got.Location() != time.UTC {
				t.Errorf("got %v, %v, want %s", got, err, tt.want)
			}
		})
	}
}
