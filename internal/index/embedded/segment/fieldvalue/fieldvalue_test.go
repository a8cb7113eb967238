package fieldvalue_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"tutti/internal/filter/query"
	"tutti/internal/index/document"
	"tutti/internal/index/embedded/segment/fieldvalue"
	"tutti/internal/index/mapping"
)

// field returns the field f of a mapping.
func field(tb testing.TB, f string) *mapping.Field {
	tb.Helper()
	tree, err := mapping.Parse([]byte(`{"properties":{"f":` + f + `}}`))
	if err != nil {
		tb.Fatal(err)
	}
	return tree.Properties["f"]
}

func TestForm(t *testing.T) {
	for f, want := range map[string]fieldvalue.Form{
		`{"type":"keyword"}`:               fieldvalue.FormText,
		`{"type":"wildcard"}`:              fieldvalue.FormText,
		`{"type":"ip"}`:                    fieldvalue.FormAddress,
		`{"type":"text"}`:                  fieldvalue.FormTerms,
		`{"type":"long"}`:                  fieldvalue.FormKey,
		`{"type":"date"}`:                  fieldvalue.FormKey,
		`{"type":"boolean"}`:               fieldvalue.FormKey,
		`{"type":"flattened"}`:             fieldvalue.FormFlattened,
		`{"type":"ip_range"}`:              fieldvalue.FormRange,
		`{"type":"geo_point"}`:             fieldvalue.FormPresent,
		`{"type":"binary"}`:                fieldvalue.FormNone,
		`{"type":"keyword","index":false}`: fieldvalue.FormText,
		`{"type":"keyword","index":false,"doc_values":false}`:   fieldvalue.FormNone,
		`{"type":"text","index":false}`:                         fieldvalue.FormNone,
		`{"type":"long_range","index":false,"doc_values":true}`: fieldvalue.FormRange,
	} {
		if got := fieldvalue.RuleOf("f", field(t, f)).Form; got != want {
			t.Errorf("%s has form %d, want %d", f, got, want)
		}
	}
}

// TestRule reads the parameters of fields.
func TestRule(t *testing.T) {
	rule := func(f string) *fieldvalue.Rule {
		r := fieldvalue.RuleOf("a.f", field(t, f))
		return &r
	}
	if got := rule(`{"type":"scaled_float","scaling_factor":10}`).Field; got.Path != "a.f" || got.Type != "scaled_float" || got.Scale != 10 {
		t.Errorf("the field is %+v", got)
	}
	for f, want := range map[string]string{
		`{"type":"keyword","null_value":"N"}`: "N", `{"type":"long","null_value":5}`: "5", `{"type":"boolean","null_value":true}`: "true",
		`{"type":"keyword","null_value":null}`: "", `{"type":"keyword"}`: "", `{"type":"text","null_value":"N"}`: "",
	} {
		if got := rule(f).NullValue; string(got) != want || (got == nil) != (want == "") {
			t.Errorf("%s has null value %q", f, got)
		}
	}
	for name, c := range map[string]struct{ got, want bool }{
		"lower":                  {rule(`{"type":"keyword","normalizer":"lowercase"}`).Lower, true},
		"another normalizer":     {rule(`{"type":"keyword","normalizer":"folding"}`).Lower, false},
		"numbers of a keyword":   {rule(`{"type":"keyword"}`).StringsOnly, false},
		"empty number":           {rule(`{"type":"double"}`).EmptyIsNull(), true},
		"empty boolean":          {rule(`{"type":"boolean"}`).EmptyIsNull(), false},
		"empty date":             {rule(`{"type":"date"}`).EmptyIsNull(), false},
		"empty keyword":          {rule(`{"type":"keyword"}`).EmptyIsNull(), false},
		"fits":                   {rule(`{"type":"keyword","ignore_above":3}`).Fits([]byte("äöü")), true},
		"above":                  {rule(`{"type":"keyword","ignore_above":3}`).Fits([]byte("abcd")), false},
		"two units are above":    {rule(`{"type":"keyword","ignore_above":3}`).Fits([]byte("ab😀")), false},
		"two units fit":          {rule(`{"type":"keyword","ignore_above":3}`).Fits([]byte("a😀")), true},
		"the longest term":       {rule(`{"type":"keyword"}`).Fits(make([]byte, fieldvalue.MaxTermBytes)), true},
		"longer":                 {rule(`{"type":"keyword"}`).Fits(make([]byte, fieldvalue.MaxTermBytes+1)), false},
		"longer, with a limit":   {rule(`{"type":"keyword","ignore_above":99999}`).Fits(make([]byte, fieldvalue.MaxTermBytes+1)), false},
		"ignore_above of a text": {rule(`{"type":"text","ignore_above":3}`).Fits([]byte("abcd")), true},
		"ignore_above of leaves": {rule(`{"type":"flattened","ignore_above":3}`).Fits([]byte("abcd")), false},
	} {
		if c.got != c.want {
			t.Errorf("%s: %t", name, c.got)
		}
	}
	unlimited := fieldvalue.Unlimited(query.Field{Path: "f", Type: "keyword"})
	if unlimited.Form != fieldvalue.FormText || unlimited.Field.Path != "f" || unlimited.Lower || !unlimited.Fits(make([]byte, fieldvalue.MaxTermBytes)) {
		t.Errorf("the rule of every text is %+v", unlimited)
	}
}

// TestKey compares the keys of texts with those of the values that they mean.
func TestKey(t *testing.T) {
	for name, c := range map[string]struct{ kind, text, want string }{
		"number": {"long", "-7", "-7"}, "text of a number": {"double", " 2.5d\n", "2.5"}, "exponent": {"double", "-1e3", "-1000"},
		"hexadecimal": {"double", "0x1p4", ""}, "not a number": {"double", "NaN", ""}, "a word": {"long", "x", ""}, "only a suffix": {"double", "d", ""},
		"too large": {"byte", "128", ""}, "boolean": {"boolean", "true", "true"}, "another boolean": {"boolean", "yes", ""},
		"date": {"date", "1970-01-02", "86400000"},
	} {
		r := fieldvalue.RuleOf("f", field(t, `{"type":"`+c.kind+`"}`))
		key, ok := r.Key([]byte(c.text))
		got := ""
		if ok {
			got = query.Text(r.Field, key)
		}
		if got != c.want {
			t.Errorf("%s: the key of %q is %q, want %q", name, c.text, got, c.want)
		}
	}
}

func TestCanonical(t *testing.T) {
	for name, c := range map[string]struct{ kind, text, want string }{
		"mapped": {"ip", "::ffff:10.0.0.1", "10.0.0.1"}, "short": {"ip", "2001:DB8:0::1", "2001:db8::1"},
		"with a zone": {"ip", "fe80::1%eth0", ""}, "no address": {"ip", "x", ""}, "upper case": {"keyword", "ÄB", "äb"},
	} {
		r := fieldvalue.RuleOf("f", field(t, `{"type":"`+c.kind+`"}`))
		if got, ok := r.Canonical([]byte(c.text)); string(got) != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q is stored as %q (%t), want %q", name, c.text, got, ok, c.want)
		}
	}
}

func TestAnalyze(t *testing.T) {
	for text, want := range map[string]string{
		"The quick-brown FOX, the 2nd": "the|quick|brown|fox|the|2nd", "é́a": "é́a", "\u0301a": "a", "--": "", "": "",
		strings.Repeat("x", 256): strings.Repeat("x", 255) + "|x",
	} {
		var terms []string
		fieldvalue.Analyze([]byte(text), func(term []byte) { terms = append(terms, string(term)) })
		if got := strings.Join(terms, "|"); got != want {
			t.Errorf("the terms of %.30q are %.60q, want %.60q", text, got, want)
		}
	}
}

// kindOf returns the kind of a JSON value, and its text as a Walker returns it.
func kindOf(value string) (document.Kind, []byte) {
	switch value[0] {
	case '{':
		return document.KindObject, []byte(value)
	case '"':
		return document.KindString, []byte(value[1 : len(value)-1])
	case 'n':
		return document.KindNull, nil
	case 't', 'f':
		return document.KindBoolean, []byte(value)
	default:
		return document.KindNumber, []byte(value)
	}
}

// TestRange reads ranges, and renders the keys or addresses of their ends, both included.
func TestRange(t *testing.T) {
	const noAddress, highest = "the bound gt of a range is beyond the last address", "9223372036854775807"
	for name, c := range map[string]struct{ f, value, want string }{
		"both included":        {`{"type":"long_range"}`, `{"gte":1,"lte":5}`, "1 5"},
		"both excluded":        {`{"type":"long_range"}`, `{"gt":1,"lt":5}`, "2 4"},
		"open above":           {`{"type":"long_range"}`, `{"gt":1}`, "2 " + highest},
		"null, excluded":       {`{"type":"long_range"}`, `{"gte":0,"lt":null}`, "0 9223372036854775806"},
		"the later wins":       {`{"type":"long_range"}`, `{"gte":1,"gt":1,"lte":5}`, "2 5"},
		"escaped name":         {`{"type":"long_range"}`, `{"\u0067te":1,"lte":5}`, "1 5"},
		"text of a number":     {`{"type":"integer_range"}`, `{"gte":"1.9","lte":5}`, "1 5"},
		"upside down":          {`{"type":"long_range"}`, `{"gte":5,"lte":1}`, "the lower bound of the range is above the upper one"},
		"excludes all":         {`{"type":"long_range"}`, `{"gt":` + highest + `}`, "the bound gt of a range excludes all values of type long"},
		"another bound":        {`{"type":"long_range"}`, `{"from":1}`, `a range has no bound "from"`},
		"not a number":         {`{"type":"long_range"}`, `{"gte":"x"}`, "the bound gte of a range is not a value of type long"},
		"an array":             {`{"type":"long_range"}`, `{"gte":[1]}`, "the bound gte of a range has no value of type long"},
		"a number":             {`{"type":"long_range"}`, `5`, "a range must be an object with gt, gte, lt and lte"},
		"network":              {`{"type":"ip_range"}`, `"10.1.2.3/8"`, "10.0.0.0 10.255.255.255"},
		"network of six":       {`{"type":"ip_range"}`, `"2001:db8::/127"`, "2001:db8:: 2001:db8::1"},
		"no network":           {`{"type":"ip_range"}`, `"10.0.0.0"`, "the range is neither an object nor a network such as 10.0.0.0/8"},
		"addresses":            {`{"type":"ip_range"}`, `{"gt":"10.0.0.9","lt":"10.0.0.20"}`, "10.0.0.10 10.0.0.19"},
		"beyond":               {`{"type":"ip_range"}`, `{"gt":"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}`, noAddress},
		"a day":                {`{"type":"date_range"}`, `{"gte":"1970-01-01","lte":"1970-01-01"}`, "0 86399999"},
		"after a day":          {`{"type":"date_range"}`, `{"gt":"1970-01-01","lt":"1970-01-03"}`, "86400000 172799999"},
		"milliseconds":         {`{"type":"date_range"}`, `{"gte":5,"lt":"7"}`, "5 6"},
		"no date":              {`{"type":"date_range"}`, `{"gte":"soon"}`, "the bound gte of a range is not a date"},
		"format of days":       {`{"type":"date_range","format":"yyyy-MM-dd"}`, `{"gte":"1970-01-02"}`, "86400000 " + highest},
		"another than a day":   {`{"type":"date_range","format":"yyyy-MM-dd"}`, `{"gte":5}`, "the bound gte of a range has not the format yyyy-MM-dd"},
		"hexadecimal fraction": {`{"type":"double_range"}`, `{"gte":"0x1.8p0","lte":2}`, "1.5 2"},
	} {
		t.Run(name, func(t *testing.T) {
			r := fieldvalue.RuleOf("f", field(t, c.f))
			kind, raw := kindOf(c.value)
			text, err := r.Range(kind, raw)
			if checked := fieldvalue.Check(field(t, c.f), kind, raw); fmt.Sprint(checked) != fmt.Sprint(err) {
				t.Errorf("Check returns %v, the rule %v", checked, err)
			}
			got := fmt.Sprint(err)
			if err == nil {
				lo, hi := fieldvalue.RangeEnds(text)
				got = end(r.Field.End(), lo) + " " + end(r.Field.End(), hi)
			}
			if got != c.want {
				t.Errorf("%s is read as %s, want %s", c.value, got, c.want)
			}
		})
	}
}

// end renders the end of a range.
func end(of query.Field, raw []byte) string {
	if len(raw) == 16 {
		return netip.AddrFrom16([16]byte(raw)).Unmap().String()
	}
	return query.Text(of, binary.BigEndian.Uint64(raw))
}

// TestCheckGeoPoint checks the notations of a point, and what is not one.
func TestCheckGeoPoint(t *testing.T) {
	const flat = `{"type":"geo_point","ignore_z_value":false}`
	const dimensions, noPoint, members = "a point has two or three numbers", "a point is an object, an array of numbers or a string", "a point has lat and lon, or type and coordinates"
	for value, want := range map[string]string{
		`{"lat":1,"lon":2}`: "", `{"lat":"1.5","lon":"-2d"}`: "", `{"type":"Point","coordinates":[1,2,3]}`: "", `[1,2]`: "", `[1,2,3]`: "",
		`[[1,2],{"lat":1,"lon":2},"1,2",null]`: "", `"1,2"`: "", `"1,2,3"`: "", `"POINT (2.5 1.5)"`: "", `"point empty"`: "", `"drm3btev3e86"`: "", `null`: "",
		`{"lat":91,"lon":2}`: "the latitude is not between -90 and 90", `[181,1]`: "the longitude is not between -180 and 180",
		`"91,1"`: "the latitude is not between -90 and 90", `{"lat":"NaN","lon":2}`: "lat is not a number", `{"lat":1}`: members,
		`{"lat":1,"lon":2,"coordinates":[1,2]}`: members, `{"coordinates":[1,2]}`: members, `{"type":"Polygon","coordinates":[1,2]}`: "the type of a geo_point is Point",
		`{"type":"Point","coordinates":1}`: "coordinates is not an array", `{"x":1}`: `a point has no "x": it has lat, lon and z, or type and coordinates`,
		`[1]`: dimensions, `[[1,2,3,4]]`: dimensions, `[1,"x"]`: noPoint, `true`: noPoint, `5`: noPoint, `"POINT 1 2"`: "it is not a point in WKT, such as POINT (2.5 1.5)",
		`""`: "it is empty", `"drma"`: `"drma" is neither latitude and longitude nor a geohash nor WKT`, `{"lat"`: "it is not valid JSON",
	} {
		kind, raw := kindOf(value)
		if kind == document.KindNull {
			raw = []byte(value)
		}
		got := ""
		if err := fieldvalue.Check(field(t, `{"type":"geo_point"}`), kind, raw); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
	for _, value := range []string{`[1,2,3]`, `"1,2,3"`, `{"lat":1,"lon":2,"z":3}`, `{"type":"Point","coordinates":[1,2,3]}`, `[[1,2,3]]`} {
		kind, raw := kindOf(value)
		if err := fieldvalue.Check(field(t, flat), kind, raw); err == nil || err.Error() != dimensions {
			t.Errorf("%s of two dimensions: %v", value, err)
		}
	}
	if err := fieldvalue.Check(field(t, `{"type":"keyword"}`), document.KindNumber, []byte("5")); err != nil {
		t.Errorf("a keyword: %v", err)
	}
}

// TestAddresses sorts addresses by their bits, of which those of version 4 are among those of version 6 that they are mapped to.
func TestAddresses(t *testing.T) {
	want := []string{"::1", "9.0.0.1", "10.0.0.1", "2001:db8::1"}
	got := slices.Sorted(slices.Values(want))
	slices.SortFunc(got, func(a, b string) int { return fieldvalue.CompareAddresses([]byte(a), []byte(b)) })
	if !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
	if a := fieldvalue.ParseAddress("10.0.0.1"); a.String() != "::ffff:10.0.0.1" || fieldvalue.AddressEnd(a) != string(a.AsSlice()) {
		t.Errorf("10.0.0.1 is parsed to %s", a)
	}
}

func TestScalar(t *testing.T) {
	for raw, want := range map[string]string{`"a\n"`: "a\n", `5`: "5", `true`: "true", `null`: "", ``: ""} {
		if got := fieldvalue.Scalar(json.RawMessage(raw)); string(got) != want || (got == nil) != (want == "") {
			t.Errorf("the scalar of %s is %q, want %q", raw, got, want)
		}
	}
}
