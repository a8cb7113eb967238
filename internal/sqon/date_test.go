package sqon_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"tutti/internal/core"
	"tutti/internal/sqon"
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

func TestParseDateRefuses(t *testing.T) {
	for _, text := range []string{
		"", "x", "202", "20244", "2024-", "2024-1", "2024-13", "2024-00", "2023-02-29", "2024-04-31", "2024-03-00", "20240305",
		"2024-03-05T", "2024-03-05T10", "2024-03-05T24:00", "2024-03-05T10:60", "2024-03-05T10:20:60", "2024-03-05T10:20:30.",
		"2024-03-05T10:20:30.1234567890", "2024-03-05 10:20", "2024-03-05t10:20", "2024-03-05T10:20z", "2024-03-05T10:20+1",
		"2024-03-05T10:20+01:", "2024-03-05T10:20+01:3", "2024-03-05T10:20+01:60", "2024-03-05T10:20+24:00", "2024-03-05Z",
		"2024-W05-1", "2024-123", "-2024", "+2024", "2024 ", "٢٠٢٤",
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
		if got, want := core.MessageOf(err), `"2024-13" is no ISO 8601 date`; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// TestParseDateLaw: what a time is printed as covers it, whatever the precision.
func TestParseDateLaw(t *testing.T) {
	layouts := []string{
		"2006", "2006-01", "2006-01-02", "2006-01-02T15:04", "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05Z07:00",
		"2006-01-02T15:04:05.000Z0700", "2006-01-02T15:04:05.000000000Z07:00",
	}
	rapid.Check(t, func(t *rapid.T) {
		zone := time.FixedZone("", 60*rapid.IntRange(-14*60, 14*60).Draw(t, "offset"))
		at := time.Unix(rapid.Int64Range(-62e9, 253e9).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
		layout := rapid.SampledFrom(layouts).Draw(t, "layout")
		printed := at
		if len(layout) > len("2006-01-02T15:04") {
			printed = at.In(zone)
		}
		from, to, err := sqon.ParseDate(printed.Format(layout))
		if err != nil || at.Before(from) || !at.Before(to) {
			t.Errorf("%s is not in %v to %v: %v", printed.Format(layout), from, to, err)
		}
	})
}

func TestValueDate(t *testing.T) {
	from, to, err := sqon.Value{Kind: sqon.Number, Text: "1709634030123"}.Date()
	if err != nil || !from.Equal(time.Date(2024, 3, 5, 10, 20, 30, 123e6, time.UTC)) || to.Sub(from) != time.Millisecond {
		t.Errorf("%v to %v: %v", from, to, err)
	}
	if from, _, err = (sqon.Value{Text: "2024"}).Date(); err != nil || from.Year() != 2024 {
		t.Errorf("%v: %v", from, err)
	}
	for want, v := range map[string]sqon.Value{
		`"1.5" is no date in milliseconds`:    {Kind: sqon.Number, Text: "1.5"},
		`"9e15" is no date in milliseconds`:   {Kind: sqon.Number, Text: "9e15"},
		`"1e999" is no date in milliseconds`:  {Kind: sqon.Number, Text: "1e999"},
		`true is no date`:                     {Kind: sqon.Bool, Text: "true"},
		`"1709634030123" is no ISO 8601 date`: {Text: "1709634030123"},
	} {
		if _, _, err := v.Date(); core.CodeOf(err) != core.CodeInvalid || core.MessageOf(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
