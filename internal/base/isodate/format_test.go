package isodate_test

import (
	"testing"
	"time"

	"tutti/internal/base/isodate"
)

// TestFormat: the instants that an Elasticsearch 8.19.21 stores for texts in fields of a format, "-" for a text that it refuses.
func TestFormat(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ format, text, want string }{
		{"yyyy/MM/dd", "2024/05/03", "2024-05-03T00:00:00.000Z"},
		{"yyyy/MM/dd", "2024/5/3", "-"},
		{"yyyy/MM/dd", "2024/13/01", "-"},
		{"yyyy/MM/dd", "2024/02/30", "-"},
		{"yyyy/MM/dd", "2024-05-03", "-"},
		{"yyyy/M/d", "2024/5/3", "2024-05-03T00:00:00.000Z"},
		{"yyyy/M/d", "2024/05/03", "2024-05-03T00:00:00.000Z"},
		{"yyyy/MM/dd HH:mm:ss", "2024/05/03 23:59:60", "-"},
		{"yyyy/MM/dd HH:mm:ss", "2024/05/03 24:00:00", "-"},
		{"yyyy/MM/dd HH:mm:ss", "2024/05/03 01:02:03", "2024-05-03T01:02:03.000Z"},
		{"yyyy-MM-dd'T'HH:mm:ss.SSS", "2024-05-03T01:02:03.045", "2024-05-03T01:02:03.045Z"},
		{"yyyy-MM-dd'T'HH:mm:ss.SSS", "2024-05-03T01:02:03.4", "-"},
		{"yyyyMMdd", "20240503", "2024-05-03T00:00:00.000Z"},
		{"basic_date", "20240503", "2024-05-03T00:00:00.000Z"},
		{"basic_date", "2024053", "2024-05-03T00:00:00.000Z"},
		{"basic_date", "2024130", "-"},
		{"basic_date", "20240532", "-"},
		{"basic_date", "20240231", "-"},
		{"basic_date", "202405", "-"},
		{"basic_date", "2024050", "-"},
		{"basic_date", "2024529", "-"},
		{"basic_date", "120240503", "-"},
		{"yy/MM/dd", "24/05/03", "2024-05-03T00:00:00.000Z"},
		{"yy/MM/dd", "99/05/03", "2099-05-03T00:00:00.000Z"},
		{"yyyy", "2024", "2024-01-01T00:00:00.000Z"},
		{"yyyy", "0000", "-"},
		{"uuuu", "0000", "0000-01-01T00:00:00.000Z"},
		{"strict_date", "2024-05-03", "2024-05-03T00:00:00.000Z"},
		{"strict_date", "2024-5-3", "-"},
		{"strict_date", "2024-02-30", "2024-03-01T00:00:00.000Z"},
		{"date", "2024-5-3", "2024-05-03T00:00:00.000Z"},
		{"date", "2024-05-03", "2024-05-03T00:00:00.000Z"},
		{"strict_year_month", "2024-05", "2024-05-01T00:00:00.000Z"},
		{"strict_date_hour", "2024-05-03T07", "2024-05-03T07:00:00.000Z"},
		{"epoch_second", "1714694400", "2024-05-03T00:00:00.000Z"},
		{"epoch_second", "1714694400.5", "2024-05-03T00:00:00.500Z"},
		{"epoch_second", "-1", "1969-12-31T23:59:59.000Z"},
		{"epoch_millis", "-1", "1969-12-31T23:59:59.999Z"},
		{"epoch_millis", "1.5", "1970-01-01T00:00:00.001Z"},
		{"yyyy/MM/dd||epoch_second", "1714694400", "2024-05-03T00:00:00.000Z"},
		{"yyyy/MM/dd||epoch_second", "2024/05/03", "2024-05-03T00:00:00.000Z"},
		{"iso8601", "2024-05-03T01:02", "2024-05-03T01:02:00.000Z"},
		{"strict_date_optional_time", "2024-05", "2024-05-01T00:00:00.000Z"},
		{"MM/yyyy", "05/2024", "2024-05-01T00:00:00.000Z"},
		{"yyyy/MM/dd", "", "-"},
		{"yyyy/MM/dd", " 2024/05/03", "-"},
	} {
		format := isodate.NewFormat(tt.format)
		if part, unread := format.Unread(); unread {
			t.Errorf("%q: %q is not read", tt.format, part)
		}
		got := "-"
		if from, _, _, ok := format.Parse(tt.text); ok {
			got = from.UTC().Format("2006-01-02T15:04:05.000Z")
		}
		if got != tt.want {
			t.Errorf("%q in %q is %s, not %s", tt.text, tt.format, got, tt.want)
		}
	}
}

// TestFormatUnread: a format of which a part is not read says which.
func TestFormatUnread(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{
		"dd": "dd", "HH:mm": "HH:mm", "yyyy/MM/dd||MMM yyyy": "MMM yyyy", "date_time": "date_time", "yyyy-MM-dd'T": "yyyy-MM-dd'T", "yMd": "yMd",
		"epoch_second||": "", "yyyy/MM/dd HH:mm:ssZ": "yyyy/MM/dd HH:mm:ssZ",
	} {
		if part, unread := isodate.NewFormat(format).Unread(); !unread || part != want {
			t.Errorf("%q: %q, %v, not %q", format, part, unread, want)
		}
	}
}

// TestFormatRange: a text stands for the whole of its smallest part.
func TestFormatRange(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		format, text string
		want         time.Duration
	}{
		{"yyyy/MM/dd", "2024/05/03", 24 * time.Hour},
		{"yyyy", "2024", 366 * 24 * time.Hour},
		{"MM/yyyy", "02/2023", 28 * 24 * time.Hour},
		{"yyyy/MM/dd HH:mm", "2024/05/03 07:08", time.Minute},
	} {
		from, to, _, ok := isodate.NewFormat(tt.format).Parse(tt.text)
		if got := to.Sub(from); !ok || got != tt.want {
			t.Errorf("%q in %q lasts %s, not %s", tt.text, tt.format, got, tt.want)
		}
	}
}
