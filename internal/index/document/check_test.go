package document_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index/document"
	"tutti/internal/index/mapping"
)

// record is a Sink that records what it receives.
type record struct {
	tree  *mapping.Field
	calls []string
}

func (r *record) name(f *mapping.Field) string {
	for path, other := range r.tree.All() {
		if other == f {
			return path
		}
	}
	return "?"
}

func (r *record) Enter(f *mapping.Field) { r.calls = append(r.calls, "enter "+r.name(f)) }
func (r *record) Leave(f *mapping.Field) { r.calls = append(r.calls, "leave "+r.name(f)) }
func (r *record) Value(f *mapping.Field, kind document.Kind, raw []byte) {
	r.calls = append(r.calls, fmt.Sprintf("%s %d %s", r.name(f), kind, raw))
}

func TestCheckFeedsTheSink(t *testing.T) {
	tree := parse(t, `{"dynamic":"strict","properties":{"k":{"type":"keyword"},"o":{"properties":{"l":{"type":"long"}}},
		"n":{"type":"nested","properties":{"b":{"type":"boolean"}}},"f":{"type":"flattened"},"p":{"type":"geo_point"}}}`)
	r := &record{tree: tree}
	var c document.Checker
	unknown, err := c.Check(tree, []byte(`{"k":["a\n",null,2],"o":{"l":1},"n":[{"b":true},{}],"f":{"x":{"y":1}},"p":{"lat":1,"lon":2},
		"o.l":5,"empty":[]}`), r)
	if err != nil || unknown {
		t.Fatal(unknown, err)
	}
	want := []string{
		`k 0 a\n`, "k 1 2", "enter o", "o.l 1 1", "leave o", "enter n", "n.b 2 true", "leave n", "enter n", "leave n",
		`f 3 {"x":{"y":1}}`, `p 3 {"lat":1,"lon":2}`, "enter o", "o.l 1 5", "leave o",
	}
	if diff := cmp.Diff(want, r.calls); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCheckNamesTheField(t *testing.T) {
	tree := mapping.Song()
	var c document.Checker
	for _, x := range []struct{ doc, kind, reason string }{
		{
			`{"files":[{"fileSize":1},{"fileSize":"x"}]}`, core.TypeParsing,
			`[files.fileSize] failed to parse field of type [long]: value "x"`,
		},
		{
			`{"samples":{"donor":{"gender":{}}}}`, core.TypeParsing,
			`[samples.donor.gender] failed to parse field of type [keyword]: found an object`,
		},
		{`{"files":[{"a":1,"a":2}]}`, core.TypeParsing, `[files.a] duplicate field`},
		{`{"studyId":tru}`, core.TypeParsing, `the document is not valid JSON: unexpected character at byte 11`},
		{`{"studyId.x":1}`, core.TypeParsing, `[studyId] is of type [keyword] and cannot have fields`},
		{
			`{"info":` + strings.Repeat(`{"x":`, 21) + `1` + strings.Repeat(`}`, 22), core.TypeParsing,
			`[info] exceeds the maximum depth limit of a flattened field`,
		},
		{
			`{"x":` + strings.Repeat(`[`, 2000), core.TypeParsing,
			`the document is not valid JSON: nested too deep at byte 1005`,
		},
		{
			`{"analysisType":{"version":` + strings.Repeat("1", 1001) + `}}`, core.TypeParsing,
			`the document is not valid JSON: number too long at byte 1028`,
		},
	} {
		_, err := c.Check(tree, []byte(x.doc), nil)
		var parsing *document.ParsingError
		if !errors.As(err, &parsing) {
			t.Errorf("%.80s: %v, want a ParsingError", x.doc, err)
			continue
		}
		if parsing.Type != x.kind || parsing.Reason != x.reason {
			t.Errorf("%.80s: %s %q, want %s %q", x.doc, parsing.Type, parsing.Reason, x.kind, x.reason)
		}
	}
	for _, analyzed := range []string{"text", "match_only_text", "search_as_you_type"} {
		tree := parse(t, `{"properties":{"k":{"type":"`+analyzed+`"}}}`)
		_, err := c.Check(tree, []byte(`{"k":{"a":1}}`), nil)
		if want := "[k] failed to parse field of type [" + analyzed + "]: found an object"; err == nil || err.Error() != want {
			t.Errorf("an object for a %s: %v, want %s", analyzed, err, want)
		}
	}
	plain := parse(t, `{"properties":{"k":{"type":"keyword"}}}`)
	_, err := c.Check(plain, []byte(`{"k":"`+strings.Repeat("x", 32767)+`"}`), nil)
	var parsing *document.ParsingError
	if !errors.As(err, &parsing) || parsing.Type != core.TypeIllegalArgument {
		t.Errorf("a term of 32,767 bytes: %v", err)
	}
}

// TestManyMembers has more members than are compared pairwise.
func TestManyMembers(t *testing.T) {
	tree := mapping.NewRoot()
	var c document.Checker
	for _, n := range []int{15, 16, 17, 18, 2000} {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"m%d":null,`, i)
		}
		if _, err := c.Check(tree, []byte(`{`+b.String()+`"last":null}`), nil); err != nil {
			t.Errorf("%d members: %v", n, err)
		}
		for _, twice := range []string{"m0", "m7", fmt.Sprint("m", n-1)} {
			if _, err := c.Check(tree, []byte(`{`+b.String()+`"`+twice+`":1}`), nil); err == nil {
				t.Errorf("%d members and %s twice: no error", n, twice)
			}
		}
	}
}

// FuzzGrow checks that a document is accepted exactly when it is one JSON object, that the grown mapping accepts it and does not
// grow again, and that the result of Remove is JSON without empty unknown members.
func FuzzGrow(f *testing.F) {
	for _, doc := range []string{
		`{"files":[{"fileSize":1,"new":{"x":[1,2.5]}}],"info":{"a":null}}`, `{"a.b":1,"a":{"c":null},"e":[[],{}]}`,
		`{"t":"2020-12-02T10:00:00Z","u":"\ud83e\uddec","":1}`, `{"x":-0.0e+10,"x":1}`, `[]`, ` {} `, `{"a":{"b":1},"a.b.c":2}`, `{"0":{"":[]}}`,
	} {
		f.Add([]byte(doc))
	}
	known := mapping.Song()
	f.Fuzz(func(t *testing.T, doc []byte) {
		grown, added, err := document.Grow(known, nil, doc)
		if err != nil {
			return
		}
		if !json.Valid(doc) {
			t.Fatalf("accepted invalid JSON: %q", doc)
		}
		var c document.Checker
		if unknown, err := c.Check(grown, doc, nil); unknown || err != nil {
			t.Fatalf("Check with the grown mapping returns %v, %v for %q", unknown, err, doc)
		}
		if _, err := mapping.Merge(known, added); err != nil {
			t.Fatalf("what was added does not merge: %v", err)
		}
		if again := render(t, parse(t, render(t, grown))); again != render(t, grown) {
			t.Fatalf("the grown mapping does not survive a round trip: %q", doc)
		}
		empties, err := document.Empties(grown, doc)
		if err != nil {
			t.Fatalf("Empties of %q: %v", doc, err)
		}
		left := document.Remove(nil, doc, empties)
		if !json.Valid(left) {
			t.Fatalf("removing %q from %q left %q", empties, doc, left)
		}
		if more, err := document.Empties(grown, left); err != nil || len(more) != 0 {
			t.Fatalf("removing %q from %q left %q with %q, %v", empties, doc, left, more, err)
		}
	})
}

// BenchmarkCheck measures the check of an analysis of 2 KB.
func BenchmarkCheck(b *testing.B) {
	var files []string
	for i := range 5 {
		files = append(files, fmt.Sprintf(`{"info":{},"objectId":"b63dff38-e239-5a5d-9c36-ec851049fd%02d","studyId":"LIRI-JP",`+
			`"analysisId":"909614f0-ceeb-11e5-8498-af7e4d100685","fileName":"1fd69adc-c623.somatic.indel.vcf.gz","fileSize":%d,`+
			`"fileType":"VCF","fileMd5sum":"93354882b0fc014b49be1b24df8f435e","fileAccess":"controlled","dataType":"SSM"}`, i, i))
	}
	doc := []byte(`{"analysisType":{"name":"variantCall","version":1},"info":{},"analysisId":"909614f0-ceeb-11e5-8498-af7e4d100685",` +
		`"studyId":"LIRI-JP","analysisState":"PUBLISHED","updatedAt":"2020-12-02T17:18:32.353334","samples":[{"info":{},` +
		`"sampleId":"SA515389","specimen":{"specimenId":"SP107109","donorId":"DO48736"},"donor":{"donorId":"DO48736"}}],` +
		`"files":[` + strings.Join(files, ",") + `]}`)
	tree := mapping.Song()
	var c document.Checker
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if unknown, err := c.Check(tree, doc, nil); unknown || err != nil {
			b.Fatal(unknown, err)
		}
	}
}
