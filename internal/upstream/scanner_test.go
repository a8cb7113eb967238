package upstream_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
	"tutti/internal/tools/testkit/dataset"
	"tutti/internal/upstream"
)

// shape is Song's; the scanner is independent of the protocol.
func shape() upstream.Format {
	return upstream.Format{
		Array:    "analyses",
		Envelope: []string{"totalAnalyses", "currentTotalAnalyses"},
		Members:  []string{"analysisId", "studyId", "analysisState"},
	}
}

// row is an Item with copied bytes.
type row struct {
	Body   string
	Values []string
}

func scan(t testing.TB, s *upstream.Scanner, r io.Reader) ([]row, upstream.Envelope, error) {
	t.Helper()
	var rows []row
	page, err := s.Page(r, func(item upstream.Item) error {
		rows = append(rows, toRow(item))
		return nil
	})
	return rows, page, err
}

func toRow(item upstream.Item) row {
	r := row{Body: string(item.Body)}
	for _, v := range item.Values {
		text := "<none>"
		if v != nil {
			text = string(v)
		}
		r.Values = append(r.Values, text)
	}
	return r
}

func TestScannerPage(t *testing.T) {
	t.Parallel()
	a := `{"analysisId":"a","studyId":"S","analysisState":"PUBLISHED"}`
	want := row{Body: a, Values: []string{"a", "S", "PUBLISHED"}}
	tests := []struct {
		name, page string
		rows       []row
		values     []string
	}{
		{"totals after", `{"analyses":[` + a + `],"totalAnalyses":1,"currentTotalAnalyses":1}`, []row{want}, []string{"1", "1"}},
		{"totals before", `{"totalAnalyses":7,"currentTotalAnalyses":1,"analyses":[` + a + `]}`, []row{want}, []string{"7", "1"}},
		{"around", ` {"totalAnalyses":7,"analyses":[` + a + ` , ` + a + `],"currentTotalAnalyses":2} ` + "\n", []row{want, want}, []string{"7", "2"}},
		{"empty", `{"analyses":[],"totalAnalyses":0}`, nil, []string{"0", ""}},
		{"unknown members", `{"x":{"analyses":[1]},"analyses":[` + a + `],"y":[[],{},"]}",null,-1.5e3]}`, []row{want}, []string{"", ""}},
		{"escaped envelope key", `{"anal\u0079ses":[` + a + `],"totalAnalyse\u0073":1}`, []row{want}, []string{"1", ""}},
		{
			"escaped key and value", `{"analyses":[{"analysis\u0049d":"\u00e9\"\\\/\ud83d\ude00","studyId":"a\tb"}]}`,
			[]row{{`{"analysis\u0049d":"\u00e9\"\\\/\ud83d\ude00","studyId":"a\tb"}`, []string{"é\"\\/😀", "a\tb", "<none>"}}},
			[]string{"", ""},
		},
		{
			"nested names do not count", `{"analyses":[{"x":{"analysisId":"n"},"y":[{"studyId":"n"}],"analysisId":"a"}]}`,
			[]row{{`{"x":{"analysisId":"n"},"y":[{"studyId":"n"}],"analysisId":"a"}`, []string{"a", "<none>", "<none>"}}},
			[]string{"", ""},
		},
		{
			"no strings, last one wins", `{"analyses":[{"analysisId":5,"studyId":null,"analysisState":"A","analysisState":"B"},{"studyId":"s","studyId":{}},{}]}`,
			[]row{
				{`{"analysisId":5,"studyId":null,"analysisState":"A","analysisState":"B"}`, []string{"<none>", "<none>", "B"}},
				{`{"studyId":"s","studyId":{}}`, []string{"<none>", "<none>", "<none>"}},
				{`{}`, []string{"<none>", "<none>", "<none>"}},
			},
			[]string{"", ""},
		},
		{
			"line breaks", "{\r\n\"analyses\" :\n[\n{\n\t\"analysisId\"\r\n:\n\"a\"\n,\"x\":[\n1\n]}\n]\n}\n",
			[]row{{"{ \t\"analysisId\"  : \"a\" ,\"x\":[ 1 ]}", []string{"a", "<none>", "<none>"}}},
			[]string{"", ""},
		},
		{"empty values", `{"analyses":[{"analysisId":""}]}`, []row{{`{"analysisId":""}`, []string{"", "<none>", "<none>"}}}, []string{"", ""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for name, r := range map[string]io.Reader{
				"whole": strings.NewReader(tt.page), "bytewise": iotest.OneByteReader(strings.NewReader(tt.page)),
				"data with EOF": iotest.DataErrReader(strings.NewReader(tt.page)),
			} {
				rows, page, err := scan(t, upstream.NewScanner(shape(), 0), r)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if d := cmp.Diff(tt.rows, rows); d != "" {
					t.Errorf("%s: rows (-want +got):\n%s", name, d)
				}
				got := []string{string(page.Values[0]), string(page.Values[1])}
				if d := cmp.Diff(tt.values, got); d != "" || page.Rows != len(tt.rows) {
					t.Errorf("%s: envelope of %d rows (-want +got):\n%s", name, page.Rows, d)
				}
			}
		})
	}
}

func TestScannerPageErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, page string
		code       core.Code
		is         error
	}{
		{"empty answer", ``, core.CodeUnavailable, upstream.ErrTruncated},
		{"spaces", `   `, core.CodeUnavailable, upstream.ErrTruncated},
		{"html", `<html>502</html>`, core.CodeUnavailable, upstream.ErrMalformed},
		{"array", `[]`, core.CodeUnavailable, upstream.ErrFormat},
		{"null", `null`, core.CodeUnavailable, upstream.ErrMalformed},
		{"no list", `{"totalAnalyses":0}`, core.CodeUnavailable, upstream.ErrFormat},
		{"empty object", `{}`, core.CodeUnavailable, upstream.ErrFormat},
		{"list is null", `{"analyses":null,"totalAnalyses":0}`, core.CodeUnavailable, upstream.ErrFormat},
		{"two lists", `{"analyses":[],"analyses":[]}`, core.CodeUnavailable, upstream.ErrFormat},
		{"row is no object", `{"analyses":[1]}`, core.CodeUnavailable, upstream.ErrFormat},
		{"trailing comma", `{"analyses":[{},]}`, core.CodeUnavailable, upstream.ErrFormat},
		{"trailing comma in page", `{"analyses":[],}`, core.CodeUnavailable, upstream.ErrMalformed},
		{"no comma", `{"analyses":[{}{}]}`, core.CodeUnavailable, upstream.ErrMalformed},
		{"behind the end", `{"analyses":[]}{}`, core.CodeUnavailable, upstream.ErrMalformed},
		{"raw line break in a string", "{\"analyses\":[{\"a\":\"b\nc\"}]}", core.CodeUnavailable, upstream.ErrMalformed},
		{"bad escape", `{"analyses":[{"a":"\x"}]}`, core.CodeUnavailable, upstream.ErrMalformed},
		{"bad number", `{"analyses":[{"a":01}]}`, core.CodeUnavailable, upstream.ErrMalformed},
		{"bad literal", `{"analyses":[{"a":nul}]}`, core.CodeUnavailable, upstream.ErrMalformed},
		{"wrong bracket", `{"analyses":[{"a":[1}]}`, core.CodeUnavailable, upstream.ErrMalformed},
		{"too deep", `{"analyses":[{"a":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}]}`, core.CodeUpstream, upstream.ErrMalformed},
		{"too large beside the records", `{"x":"` + strings.Repeat("x", 1<<20) + `","analyses":[]}`, core.CodeUpstream, upstream.ErrTooLarge},
		{"a large record cut short", `{"analyses":[{"a":"` + strings.Repeat("x", 45<<10), core.CodeUnavailable, upstream.ErrTruncated},
		{"a large record that is not JSON", `{"analyses":[{"a":"` + strings.Repeat("x", 45<<10) + `",}]}`, core.CodeUnavailable, upstream.ErrMalformed},
		{"a large record too deep", `{"analyses":[{"a":"` + strings.Repeat("x", 45<<10) + `","b":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}]}`, core.CodeUpstream, upstream.ErrMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := scan(t, upstream.NewScanner(shape(), 41<<10), strings.NewReader(tt.page))
			if core.CodeOf(err) != tt.code || !errors.Is(err, tt.is) {
				t.Errorf("error %v with code %q, want %v with %q", err, core.CodeOf(err), tt.is, tt.code)
			}
		})
	}
}

func TestScannerErrorOfEach(t *testing.T) {
	t.Parallel()
	stop := errors.New("enough")
	calls := 0
	_, err := upstream.NewScanner(shape(), 0).Page(strings.NewReader(`{"analyses":[{},{}]}`), func(upstream.Item) error {
		calls++
		return stop
	})
	if err != stop || calls != 1 { //nolint:errorlint // identity is part of the contract
		t.Errorf("error %v after %d calls", err, calls)
	}
}

func TestScannerReadErrors(t *testing.T) {
	t.Parallel()
	classified := core.NewError(core.CodeUnavailable, "the upstream did not answer in time")
	half := `{"analyses":[{"analysisId":"a"},`
	_, _, err := scan(t, upstream.NewScanner(shape(), 0), io.MultiReader(strings.NewReader(half), iotest.ErrReader(classified)))
	if err != error(classified) { //nolint:errorlint // identity is part of the contract
		t.Errorf("a classified error became %v", err)
	}
	_, _, err = scan(t, upstream.NewScanner(shape(), 0), io.MultiReader(strings.NewReader(half), iotest.ErrReader(io.ErrUnexpectedEOF)))
	if core.CodeOf(err) != core.CodeUnavailable || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("an unexpected end became %v", err)
	}
	// Complete JSON before a broken connection is not a complete response.
	whole := io.MultiReader(strings.NewReader(`{"analyses":[]}`), iotest.ErrReader(io.ErrUnexpectedEOF))
	if _, _, err = scan(t, upstream.NewScanner(shape(), 0), whole); core.CodeOf(err) != core.CodeUnavailable {
		t.Errorf("a broken end became %v", err)
	}
}

func TestScannerLargeRecordsAmongSmallOnes(t *testing.T) {
	t.Parallel()
	var page bytes.Buffer
	var want []int
	page.WriteString(`{"analyses":[`)
	for i := range 60 {
		size := 10
		if i%7 == 3 {
			size = 40_000 * i
		}
		if i > 0 {
			page.WriteByte(',')
		}
		n, _ := fmt.Fprintf(&page, `{"analysisId":"%d","x":"%s"}`, i, strings.Repeat("é", size))
		want = append(want, n)
	}
	page.WriteString(`]}`)
	s := upstream.NewScanner(shape(), 0)
	for range 2 { // a scanner is reused
		i := 0
		_, err := s.Page(iotest.HalfReader(bytes.NewReader(page.Bytes())), func(item upstream.Item) error {
			if string(item.Values[0]) != fmt.Sprint(i) || len(item.Body) != want[i] || !json.Valid(item.Body) {
				t.Errorf("record %d: id %s, %d bytes of %d", i, item.Values[0], len(item.Body), want[i])
			}
			i++
			return nil
		})
		if err != nil || i != len(want) {
			t.Fatalf("%d records, %v", i, err)
		}
	}
}

// TestScannerTruncation truncates a page at every byte: each is an error, never a shorter page.
func TestScannerTruncation(t *testing.T) {
	t.Parallel()
	page := `{"totalAnalyses":12,"analyses":[{"analysisId":"a\u0041","n":-1.5e+3,"b":[true,false,null]},{"studyId":"S"}],"currentTotalAnalyses":2}`
	s := upstream.NewScanner(shape(), 0)
	for n := range len(page) {
		if _, _, err := scan(t, s, strings.NewReader(page[:n])); !errors.Is(err, upstream.ErrTruncated) {
			t.Errorf("cut after %d bytes: %v", n, err)
		}
	}
	if _, _, err := scan(t, s, strings.NewReader(page)); err != nil {
		t.Error(err)
	}
}

func TestScannerRecord(t *testing.T) {
	t.Parallel()
	s := upstream.NewScanner(shape(), 1<<20)
	body := `{"analysisId":"a","x":"` + strings.Repeat("y", 9000) + `"}`
	for _, hint := range []int64{-1, 0, int64(len(body)), 1 << 40} {
		for _, r := range []io.Reader{strings.NewReader("\n" + body + " \n"), iotest.OneByteReader(strings.NewReader(body))} {
			item, err := s.Record(r, hint)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Record(strings.NewReader(`{"analysisId":"zzzzzzzzzzzz"}`), -1); err != nil {
				t.Fatal(err)
			}
			if string(item.Body) != body || string(item.Values[0]) != "a" {
				t.Errorf("hint %d: %d bytes, id %q", hint, len(item.Body), item.Values[0])
			}
		}
	}
	for _, bad := range []string{``, `{`, `[]`, `{}x`, `{} {}`, `"a"`, `<html>`, `{"a":"` + strings.Repeat("x", 2<<20)} {
		if _, err := s.Record(strings.NewReader(bad), -1); err == nil {
			t.Errorf("%.20q is accepted as a record", bad)
		}
	}
}

// drawJSON draws a JSON text of some value, white space and escapes included.
func drawJSON(t *rapid.T, depth int) string {
	space := func() string { return rapid.SampledFrom([]string{"", "", " ", "\n", "\r\n\t"}).Draw(t, "space") }
	kinds := 6
	if depth == 0 {
		kinds = 4
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return drawString(t)
	case 1:
		return rapid.SampledFrom([]string{"0", "-0", "1.5", "-12e+3", "1E-2", "123456789012345678901234567890", "999999999999999", "-999999999999999", "9007199254740993", "1.23456789012345"}).Draw(t, "number")
	case 2:
		return rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "literal")
	case 3:
		return rapid.SampledFrom([]string{"{}", "[]", "{ }", "[\n]", `""`}).Draw(t, "empty")
	case 4:
		items := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return space() + drawJSON(t, depth-1) + space() }), 1, 4).Draw(t, "array")
		return "[" + strings.Join(items, ",") + "]"
	default:
		return drawObject(t, depth-1)
	}
}

func drawObject(t *rapid.T, depth int) string {
	space := func() string { return rapid.SampledFrom([]string{"", "", " ", "\n"}).Draw(t, "space") }
	key := func() string {
		if rapid.Bool().Draw(t, "known") {
			return rapid.SampledFrom([]string{
				`"analysisId"`, `"studyId"`, `"analysisState"`, `"analysis\u0049d"`, `"repositories"`, `"reposit\u006fries"`, `"analyses"`,
			}).Draw(t, "key")
		}
		return drawString(t)
	}
	members := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
		return space() + key() + space() + ":" + space() + drawJSON(t, depth) + space()
	}), 0, 6).Draw(t, "object")
	return "{" + strings.Join(members, ",") + "}"
}

func drawString(t *rapid.T) string {
	s := rapid.OneOf(rapid.String(), rapid.Just("9007199254740993")).Draw(t, "string")
	quoted, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(quoted)
}

// strings of the members as encoding/json sees them.
func oracle(t rapid.TB, body string) []string {
	var object map[string]any
	if err := json.Unmarshal([]byte(body), &object); err != nil {
		t.Fatalf("oracle: %v in %q", err, body)
	}
	values := make([]string, 3)
	for i, name := range shape().Members {
		values[i] = "<none>"
		if s, ok := object[name].(string); ok {
			values[i] = s
		}
	}
	return values
}

// isPlain reports whether encoding/json finds neither numbers of 16 bytes or more nor raw line feeds in body.
func isPlain(t rapid.TB, body []byte) bool {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	for {
		token, err := d.Token()
		number, _ := token.(json.Number)
		switch {
		case err == io.EOF:
			return !bytes.Contains(body, []byte("\n"))
		case err != nil:
			t.Fatalf("oracle: %v in %q", err, body)
		case len(number) >= 16:
			return false
		}
	}
}

func flat(body string) string { return strings.NewReplacer("\n", " ", "\r", " ").Replace(body) }

// TestScannerAgreesWithEncodingJSON: random records are returned with their own bytes and members, and no truncated page is accepted.
func TestScannerAgreesWithEncodingJSON(t *testing.T) {
	t.Parallel()
	s := upstream.NewScanner(shape(), 0)
	rapid.Check(t, func(t *rapid.T) {
		bodies := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return drawObject(t, 3) }), 0, 5).Draw(t, "records")
		page := `{"x":` + drawJSON(t, 2) + `,"analyses":[` + strings.Join(bodies, " ,\n") + `],"totalAnalyses":` + fmt.Sprint(len(bodies)) + "}"
		var rows []row
		_, err := s.Page(iotest.HalfReader(strings.NewReader(page)), func(item upstream.Item) error {
			rows = append(rows, toRow(item))
			if want := isPlain(t, item.Body); item.Plain != want {
				t.Fatalf("plain: %t, want %t: %q", item.Plain, want, item.Body)
			}
			return nil
		})
		if err != nil {
			t.Fatalf("%v in %q", err, page)
		}
		if len(rows) != len(bodies) {
			t.Fatalf("%d records of %d", len(rows), len(bodies))
		}
		for i, body := range bodies {
			if d := cmp.Diff(row{flat(body), oracle(t, body)}, rows[i]); d != "" {
				t.Fatalf("record %d (-want +got):\n%s", i, d)
			}
		}
		cut := rapid.IntRange(0, len(page)-1).Draw(t, "cut")
		if _, err := s.Page(strings.NewReader(page[:cut]), func(upstream.Item) error { return nil }); err == nil {
			t.Fatalf("cut after %d of %d bytes passes: %q", cut, len(page), page)
		}
	})
}

// TestScannerShape: records have the same shape exactly if they have the same names, as they are written, and kinds in the same order.
func TestScannerShape(t *testing.T) {
	t.Parallel()
	s := upstream.NewScanner(shape(), 0)
	shapes := map[uint64]string{}
	rapid.Check(t, func(t *rapid.T) {
		body := drawObject(t, 3)
		item, err := s.Record(iotest.HalfReader(strings.NewReader(body)), -1)
		if err != nil {
			t.Fatal(err)
		}
		text := kindsOf(body)
		if other, is := shapes[item.Shape]; is && other != text {
			t.Fatalf("the shape of %s is that of %s", text, other)
		}
		shapes[item.Shape] = text
		again, err := s.Record(strings.NewReader(text), -1)
		if err != nil || again.Shape != item.Shape {
			t.Fatalf("another shape, %v: %s %s", err, body, text)
		}
	})
	shapes = map[uint64]string{}
	name := ""
	for n := range 40 { // each byte of a name counts
		for i := range n + 1 {
			text := name
			if i < n {
				text = name[:i] + "~" + name[i+1:]
			}
			item, err := s.Record(strings.NewReader(`{"`+text+`":1}`), -1)
			if err != nil || shapes[item.Shape] != "" {
				t.Fatalf("%v: %q has the shape of %q", err, text, shapes[item.Shape])
			}
			shapes[item.Shape] = text + " "
		}
		name += string(rune('a' + n%26))
	}
	for _, pair := range [][2]string{
		{`{"a":[1,"x"]}`, `{"a":["x",1]}`},
		{`{"a":[],"b":1}`, `{"a":[1],"b":1}`},
		{`{"a":{"b":1}}`, `{"a":{},"b":1}`},
		{`{"a":[[1],2]}`, `{"a":[[1,2]]}`},
		{`{"a":null}`, `{"a":false}`},
		{`{"analysisId":1}`, `{"analysisId":"1"}`},
		{`{"a":1,"b":1}`, `{"b":1,"a":1}`},
		{`{"a":[{}]}`, `{"a":{}}`},
		{`{"a":"2020-02-28"}`, `{"a":"2020-02-31"}`},
		{`{"analysisId":"2020-02-28"}`, `{"analysisId":"x"}`},
	} {
		left, err := s.Record(strings.NewReader(pair[0]), -1)
		right, otherErr := s.Record(strings.NewReader(pair[1]), -1)
		if err != nil || otherErr != nil || left.Shape == right.Shape {
			t.Errorf("%v %v: %s has the shape of %s", err, otherErr, pair[0], pair[1])
		}
	}
}

// kindsOf returns body with the same names and other values of the same kinds, without white space.
func kindsOf(body string) string {
	value := regexp.MustCompile(`"(?:[^"\\]|\\.)*"\s*:?|-?\d[-+.\deE]*|true|false|null|\s+`)
	return value.ReplaceAllStringFunc(body, func(token string) string {
		switch c := token[0]; {
		case c == '"' && strings.HasSuffix(token, ":"):
			return strings.TrimRight(token[:len(token)-1], " \t\r\n") + ":"
		case c == '"' && jsontext.IsDay(strings.Trim(token, `"`)):
			return `"2001-02-03"`
		case c == '"':
			return `"v"`
		case c == 't' || c == 'f':
			return "true"
		case c == 'n':
			return "null"
		case strings.TrimSpace(token) == "":
			return ""
		default:
			return "7"
		}
	})
}

// FuzzScannerRecord: the scanner accepts exactly the objects that encoding/json accepts.
func FuzzScannerRecord(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1}`, ` {"analysisId":"x","b":[1,2,{"c":null}]} `, `{"a":"\ud800"}`, `{"a":-0.0e1}`, `{"a":.1}`, `{"a":"\u12"}`,
		`{"a":truefalse}`, `[`, `{"a":1,}`, "{\"a\":\"\x00\"}", `{"analysisId":"\u0041"}`, `{"a" "b"}`, `{a:1}`, `{"a":12345678901234567890}`, `{"":true}`,
		"{\"a\":[{\"b\":\n9007199254740993}]}", `{"a":"9007199254740993","b":-99999999999999}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		given := append([]byte(nil), body...)
		trimmed := bytes.Trim(body, " \t\r\n")
		valid := json.Valid(body) && trimmed[0] == '{'
		item, err := upstream.NewScanner(shape(), 0).Record(iotest.OneByteReader(bytes.NewReader(body)), -1)
		if (err == nil) != valid {
			t.Fatalf("scanner says %v, encoding/json says %v of %q", err, valid, body)
		}
		skipped, skipErr := upstream.NewScanner(shape(), 1).Record(iotest.HalfReader(bytes.NewReader(given)), -1)
		if (skipErr == nil) != valid {
			t.Fatalf("with the smallest limit the scanner says %v, encoding/json says %v of %q", skipErr, valid, given)
		}
		if err != nil {
			return
		}
		checkSkipped(t, skipped, item)
		if string(item.Body) != flat(string(trimmed)) || bytes.ContainsAny(item.Body, "\r\n") {
			t.Errorf("body %q of %q", item.Body, given)
		}
		if want := isPlain(t, item.Body); item.Plain != want {
			t.Errorf("plain: %t, want %t: %q", item.Plain, want, item.Body)
		}
		if bytes.Equal(bytes.ToValidUTF8(body, nil), body) {
			if d := cmp.Diff(oracle(t, string(body)), toRow(item).Values); d != "" {
				t.Errorf("members (-want +got):\n%s", d)
			}
		}
	})
}

// FuzzScannerPage: no page is accepted that encoding/json rejects, and all rows are equal.
func FuzzScannerPage(f *testing.F) {
	f.Add([]byte(`{"analyses":[{"analysisId":"a"}],"totalAnalyses":1}`))
	f.Add([]byte(`{"totalAnalyses":1,"analyses":[]}`))
	f.Add([]byte(`{"analyses":[{},{}],"x":{"analyses":[1]}} `))
	f.Add([]byte(`{"analyses":[{"x":[{"analysisId":"n"},"\\\""],"analysis\u0049d":"\ud83d\ude00","studyId":"s","studyId":null},{"a":-1.5e+3}]}`))
	f.Fuzz(func(t *testing.T, page []byte) {
		given := bytes.Clone(page)
		rows, _, err := scan(t, upstream.NewScanner(shape(), 0), iotest.HalfReader(bytes.NewReader(page)))
		checkLimits(t, given, rows, err)
		var want struct {
			Analyses []json.RawMessage `json:"analyses"`
		}
		if err != nil {
			return
		}
		if !json.Valid(page) {
			t.Fatalf("took %q", page)
		}
		if bytes.Contains(bytes.ToLower(page), []byte(`\u`)) || bytes.Count(bytes.ToLower(page), []byte(`"analyses"`)) != 1 {
			return // encoding/json matches names case-insensitively, and uses the last of several
		}
		if err := json.Unmarshal(page, &want); err != nil || len(want.Analyses) != len(rows) {
			t.Fatalf("%d rows of %d: %v", len(rows), len(want.Analyses), err)
		}
		for i := range rows {
			if rows[i].Body != flat(string(want.Analyses[i])) {
				t.Errorf("row %d is %q, want %q", i, rows[i].Body, want.Analyses[i])
			}
		}
	})
}

// BenchmarkScannerPage reads pages of 500 analyses of about 2.3 KB; ns/record is the figure.
func BenchmarkScannerPage(b *testing.B) {
	var page bytes.Buffer
	page.WriteString(`{"analyses":[`)
	const rows = 500
	for i, a := range dataset.GenerateAnalyses(1, "PANC-CA", rows) {
		if i > 0 {
			page.WriteByte(',')
		}
		page.Write(a.Body)
	}
	page.WriteString(`],"totalAnalyses":500}`)
	s := upstream.NewScanner(shape(), 0)
	b.SetBytes(int64(page.Len()))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		if _, err := s.Page(bytes.NewReader(page.Bytes()), func(upstream.Item) error { n++; return nil }); err != nil || n != rows {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows), "ns/record")
}
