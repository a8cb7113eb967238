package document_test

import (
	"errors"
	"fmt"
	"testing"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index/document"
	"tutti/internal/index/mapping"
)

// TestNanoseconds checks the format of date_nanos, which requires seconds in times, and its range from 1970 to the end of 64-bit
// nanoseconds.
func TestNanoseconds(t *testing.T) {
	tree := parse(t, `{"properties":{"at":{"type":"date_nanos"},"own":{"type":"date_nanos","format":"strict_date_optional_time"},
		"lax":{"type":"date_nanos","ignore_malformed":true},"day":{"type":"date"}}}`)
	check := func(doc string) error {
		var c document.Checker
		_, err := c.Check(tree, []byte(doc), nil)
		return err
	}
	for _, value := range []string{
		`"2024"`, `"2024-03"`, `"2024-03-05"`, `"2024-03-05T10:20:30"`, `"2024-03-05T10:20:30.1"`, `"2024-03-05T10:20:30,123Z"`,
		`"2024-03-05T10:20:30.123456789Z"`, `"2024-03-05T10:20:30+01:00"`, `"2024-03-05T10:20:30+0100"`, `"2024-03-05T10:20:30+01"`,
		`"1970"`, `"1970-01-01T00:00:00Z"`, `"1969-12-31T23:30:00-01:00"`, `"2262"`, `"2262-04-11T23:47:16.854775807Z"`,
		`"2262-04-12T00:00:00+01:00"`, `"2262-04-12T01:02:16.8547758+01:15"`, `0`, `"0"`, `"-0"`, `0.5`, `2024`, `9223372036854`,
		`9223372036854.775`, `9223372036854.775807`, `"1709634030123.5"`, `"1709634030123."`, `null`, `[]`, `["2024","2025"]`,
	} {
		if err := check(`{"at":` + value + `}`); err != nil {
			t.Errorf("%s: %v", value, err)
		}
	}
	rejected := []string{
		`"2024-03-05T"`, `"2024-03-05T10"`, `"2024-03-05T10Z"`, `"2024-03-05T10+01:00"`, `"2024-03-05T10:20"`, `"2024-03-05T10:20Z"`,
		`"2024-03-05T10:20+01:00"`, `"2024-03-05T10:20:30.1234567890"`, `"1969"`, `1969`, `"0001"`, `"1969-12-31"`,
		`"1969-12-31T23:59:59.999999999Z"`, `"1970-01-01T00:30:00+01:00"`, `"2262-04-11T23:47:16.854775808Z"`, `"2262-04-12"`,
		`"2262-04-11T23:47:17"`, `"2262-04-11T22:47:16.9-01"`, `"2262-04-12T01:02:16.854775808+0115"`, `"2263"`, `"9999"`, `9999`,
		`-1`, `-0.5`, `"-1.5"`, `9223372036855`, `9223372036854.775808`, `9223372036854.7759`, `99999999999999999`, `1e12`, `"1e12"`,
		`1709634030123.1234567`, `true`, `""`, `["2024","1969"]`,
	}
	for _, value := range rejected {
		err := check(`{"at":` + value + `}`)
		parsing, is := errors.AsType[*document.ParsingError](err)
		if !is || parsing.Type != core.TypeParsing {
			t.Errorf("%s: %v, want one of type %s", value, err, core.TypeParsing)
		}
	}
	for name, doc := range map[string]string{
		"a format of one's own": `{"own":"2024-03-05T10:20"}`, "what is left out": `{"lax":"1969"}`, "a date": `{"day":"1969-03-05T10:20"}`,
	} {
		if err := check(doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	const want = `[at] failed to parse field of type [date_nanos]: value "1969"`
	if err := check(`{"at":"1969"}`); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := check(`{"day":1709634030123.1234567}`); err == nil {
		t.Error("a millisecond has six digits of fraction")
	}
}

// FuzzNanoseconds checks that values accepted by the mapping can be searched.
func FuzzNanoseconds(f *testing.F) {
	tree, err := mapping.Parse([]byte(`{"properties":{"at":{"type":"date_nanos"}}}`))
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{"2024", "2262-04-11T23:47:16.854775807Z", "1969-12-31T23:30:00-01:00", "9223372036854.775807", "-0", "1970-01-01T00:00:00,5"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var c document.Checker
		if _, err := c.Check(tree, fmt.Appendf(nil, "{\"at\":%q}", text), nil); err != nil {
			return
		}
		if _, ok := query.Key(query.Field{Path: "at", Type: "date_nanos"}, text); !ok {
			t.Errorf("%q is taken, but has no place among the instants", text)
		}
	})
}
