package sqon_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tutti/internal/core"
	"tutti/internal/filter/sqon"
)

func TestParseDate(t *testing.T) {
	for text, want := range map[string][2]string{
		"2024":                           {"2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"},
		"0000":                           {"0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z"},
		"2024-02":                        {"2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"},
		"2023-12":                        {"2023-12-01T00:00:00Z", "2024-01-01T00:00:00Z"},
		"2024-02-29":                     {"2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z"},
		"2024-03-05T10:20":               {"2024-03-05T10:20:00Z", "2024-03-05T10:21:00Z"},
		"2024-03-05T10:20Z":              {"2024-03-05T10:20:00Z", "2024-03-05T10:21:00Z"},
		"2024-03-05T10:20:30":            {"2024-03-05T10:20:30Z", "2024-03-05T10:20:31Z"},
		"2024-03-05T10:20:30.5":          {"2024-03-05T10:20:30.5Z", "2024-03-05T10:20:30.6Z"},
		"2024-03-05T10:20:30,123Z":       {"2024-03-05T10:20:30.123Z", "2024-03-05T10:20:30.124Z"},
		"2024-03-05T10:20:30.123456789Z": {"2024-03-05T10:20:30.123456789Z", "2024-03-05T10:20:30.12345679Z"},
		"2024-03-05T00:20:30+01:30":      {"2024-03-04T22:50:30Z", "2024-03-04T22:50:31Z"},
		"2024-03-05T23:20-0130":          {"2024-03-06T00:50:00Z", "2024-03-06T00:51:00Z"},
		"2024-03-05T23:20+02":            {"2024-03-05T21:20:00Z", "2024-03-05T21:21:00Z"},
		"2024-03-05T23:20-18:00":         {"2024-03-06T17:20:00Z", "2024-03-06T17:21:00Z"},
		"2024-03-05T":                    {"2024-03-05T00:00:00Z", "2024-03-06T00:00:00Z"},
		"2024-03-05T10":                  {"2024-03-05T10:00:00Z", "2024-03-05T11:00:00Z"},
		"2024-03-05T10+01":               {"2024-03-05T09:00:00Z", "2024-03-05T10:00:00Z"},
		"2024-03-05T00":                  {"2024-03-05T00:00:00Z", "2024-03-05T01:00:00Z"},
		"2024-03-05T24":                  {"2024-03-06T00:00:00Z", "2024-03-06T01:00:00Z"},
		"2024-12-31T24:00":               {"2025-01-01T00:00:00Z", "2025-01-01T00:01:00Z"},
		"2024-03-05T24:00:00.0+01:00":    {"2024-03-05T23:00:00Z", "2024-03-05T23:00:00.1Z"},
		"2000-02-29":                     {"2000-02-29T00:00:00Z", "2000-03-01T00:00:00Z"},
		"2024-W10":                       {"2024-03-04T00:00:00Z", "2024-03-11T00:00:00Z"},
		"2024-W10-2":                     {"2024-03-05T00:00:00Z", "2024-03-06T00:00:00Z"},
		"2020-W01-1":                     {"2019-12-30T00:00:00Z", "2019-12-31T00:00:00Z"},
		"2020-W53-7":                     {"2021-01-03T00:00:00Z", "2021-01-04T00:00:00Z"},
		"2021-W01-1":                     {"2021-01-04T00:00:00Z", "2021-01-05T00:00:00Z"},
		"2024-W10-2T10:20Z":              {"2024-03-05T10:20:00Z", "2024-03-05T10:21:00Z"},
		"2024-065":                       {"2024-03-05T00:00:00Z", "2024-03-06T00:00:00Z"},
		"2023-365":                       {"2023-12-31T00:00:00Z", "2024-01-01T00:00:00Z"},
		"2024-366T10":                    {"2024-12-31T10:00:00Z", "2024-12-31T11:00:00Z"},
		"1709634030123":                  {"2024-03-05T10:20:30.123Z", "2024-03-05T10:20:30.124Z"},
		"0":                              {"1970-01-01T00:00:00Z", "1970-01-01T00:00:00.001Z"},
		"20240305":                       {"1970-01-01T05:37:20.305Z", "1970-01-01T05:37:20.306Z"},
		"00000":                          {"1970-01-01T00:00:00Z", "1970-01-01T00:00:00.001Z"},
		"-2024":                          {"-2024-01-01T00:00:00Z", "-2023-01-01T00:00:00Z"},
		"-0001-12":                       {"-0001-12-01T00:00:00Z", "0000-01-01T00:00:00Z"},
		"-0000":                          {"0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z"},
		"-0004-02-29T10+01":              {"-0004-02-29T09:00:00Z", "-0004-02-29T10:00:00Z"},
		"-02024":                         {"1969-12-31T23:59:57.976Z", "1969-12-31T23:59:57.977Z"},
		"2024.":                          {"1970-01-01T00:00:02.024Z", "1970-01-01T00:00:02.025Z"},
		"1.5":                            {"1970-01-01T00:00:00.0015Z", "1970-01-01T00:00:00.0016Z"},
		"-1.5":                           {"1969-12-31T23:59:59.9985Z", "1969-12-31T23:59:59.9986Z"},
		"0.12345678":                     {"1970-01-01T00:00:00.000123456Z", "1970-01-01T00:00:00.000123457Z"},
	} {
		t.Run(text, func(t *testing.T) {
			from, to, err := sqon.ParseDate(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := [2]string{from.Format(time.RFC3339Nano), to.Format(time.RFC3339Nano)}; got != want {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}

func TestParseDateRejects(t *testing.T) {
	for _, text := range []string{
		"", "x", "2024-", "2024-1", "2024-13", "2024-00", "2023-02-29", "1900-02-29", "2024-04-31", "2024-03-00",
		"2024T", "2024-03T10", "2024-03-05TZ", "2024-03-05T1", "2024-03-05T10:", "2024-03-05T25", "2024-03-05T24:01", "2024-03-05T24:00:00.001",
		"2024-03-05T10:60", "2024-03-05T10:20:60", "2024-03-05T10:20:30.", "2024-03-05T10:20+18:01", "2024-03-05T10:20-19",
		"2024-03-05T10:20:30.1234567890", "2024-03-05 10:20", "2024-03-05t10:20", "2024-03-05T10:20z", "2024-03-05T10:20+1",
		"2024-03-05T10:20+01:", "2024-03-05T10:20+01:3", "2024-03-05T10:20+01:60", "2024-03-05T10:20+24:00", "2024-03-05Z",
		"2024-W", "2024-W5", "2024-W00", "2024-W53", "2025-W53", "2020-W54", "2024-W05-", "2024-W05-0", "2024-W05-8", "2024-W05T10", "2024W05", "2024-w05",
		"2024-000", "2023-366", "1900-366", "2024-367", "2024-99905-03", "2024-1234", "2024-065-1", "+2024", "2024 ", "٢٠٢٤",
		"-", ".", ".5", "-.5", "--5", "1.2.3", "1.-2", "1e3", "0x1", "1_0", "1000000000000000000", "-1000000000000000000",
	} {
		t.Run(text, func(t *testing.T) {
			_, _, err := sqon.ParseDate(text)
			if core.CodeOf(err) != core.CodeInvalid {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("message", func(t *testing.T) {
		_, _, err := sqon.ParseDate("2024-13")
		if got, want := core.MessageOf(err), `"2024-13" is neither an ISO 8601 date nor a number of milliseconds`; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// TestParseDateLaw checks that the range of a printed time contains it, at every precision.
func TestParseDateLaw(t *testing.T) {
	layouts := []string{
		"2006", "2006-01", "2006-01-02", "2006-01-02T15:04", "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05Z07:00",
		"2006-01-02T15:04:05.000Z0700", "2006-01-02T15:04:05.000000000Z07:00", "2006-01-02T15", "2006-01-02T15Z07:00", "2006-01-02T",
		"2006-002", "2006-002T15:04:05Z07:00",
	}
	rapid.Check(t, func(t *rapid.T) {
		zone := time.FixedZone("", 60*rapid.IntRange(-14*60, 14*60).Draw(t, "offset"))
		at := time.Unix(rapid.Int64Range(-62e9, 253e9).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
		layout := rapid.SampledFrom(layouts).Draw(t, "layout")
		printed := at
		if len(layout) > len("2006-01-02T15:04") {
			printed = at.In(zone)
		}
		year, week := at.ISOWeek()
		for _, text := range []string{
			printed.Format(layout), fmt.Sprintf("%04d-W%02d", year, week), fmt.Sprintf("%04d-W%02d-%d", year, week, (at.Weekday()+6)%7+1),
			fmt.Sprintf("%018d", at.UnixMilli()),
		} {
			from, to, err := sqon.ParseDate(text)
			if err != nil || at.Before(from) || !at.Before(to) {
				t.Errorf("%s is not in %v to %v: %v", text, from, to, err)
			}
		}
	})
}

func TestValueDate(t *testing.T) {
	from, to, err := sqon.Value{Kind: sqon.Number, Text: "1709634030123"}.Date()
	if err != nil || !from.Equal(time.Date(2024, 3, 5, 10, 20, 30, 123e6, time.UTC)) || to.Sub(from) != time.Millisecond {
		t.Errorf("%v to %v: %v", from, to, err)
	}
	// The search engine reads a number by its digits: 2024 has the same meaning in documents and filters.
	for _, kind := range []sqon.Kind{sqon.String, sqon.Number} {
		if from, to, err = (sqon.Value{Kind: kind, Text: "2024"}).Date(); err != nil || from.Year() != 2024 || to.Year() != 2025 {
			t.Errorf("%v to %v: %v", from, to, err)
		}
		if from, to, err = (sqon.Value{Kind: kind, Text: "1.5"}).Date(); err != nil || from.UnixMicro() != 1500 || to.Sub(from) != 100*time.Microsecond {
			t.Errorf("%v to %v: %v", from, to, err)
		}
		if from, _, err = (sqon.Value{Kind: kind, Text: "999999999999999999"}).Date(); err != nil || from.UnixMilli() != 999999999999999999 {
			t.Errorf("%v: %v", from, err)
		}
	}
	if from, _, err = (sqon.Value{Kind: sqon.Number, Text: "9e15"}).Date(); err != nil || from.UnixMilli() != 9e15 {
		t.Errorf("%v: %v", from, err)
	}
	for want, v := range map[string]sqon.Value{
		`"1.5e0" is not a date in milliseconds`:                           {Kind: sqon.Number, Text: "1.5e0"},
		`"1e18" is not a date in milliseconds`:                            {Kind: sqon.Number, Text: "1e18"},
		`"1e999" is not a date in milliseconds`:                           {Kind: sqon.Number, Text: "1e999"},
		`true is not a date`:                                              {Kind: sqon.Bool, Text: "true"},
		`"1e3" is neither an ISO 8601 date nor a number of milliseconds`:  {Text: "1e3"},
		`"true" is neither an ISO 8601 date nor a number of milliseconds`: {Text: "true"},
	} {
		if _, _, err := v.Date(); core.CodeOf(err) != core.CodeInvalid || core.MessageOf(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
