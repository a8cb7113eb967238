package document_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index/document"
	"tutti/internal/index/mapping"
)

// events records what a Sink receives; nulls only when nulls is set.
type events struct {
	names map[*mapping.Field]string
	nulls bool
	all   []string
}

func newEvents(tree *mapping.Field) *events {
	e := &events{names: map[*mapping.Field]string{}}
	for path, f := range tree.All() {
		e.names[f] = path
	}
	return e
}

func (e *events) Enter(f *mapping.Field) { e.all = append(e.all, "<"+e.names[f]) }
func (e *events) Leave(f *mapping.Field) { e.all = append(e.all, e.names[f]+">") }

func (e *events) Value(f *mapping.Field, kind document.Kind, raw []byte) {
	if kind != document.KindNull || e.nulls {
		e.all = append(e.all, fmt.Sprintf("%s=%d%s", e.names[f], kind, raw))
	}
}

func TestWalk(t *testing.T) {
	tree, err := mapping.Parse([]byte(`{"properties":{"k":{"type":"keyword"},"n":{"type":"nested","properties":{"l":{"type":"long"}}},
		"o":{"properties":{"k":{"type":"keyword"}}},"off":{"enabled":false,"properties":{"k":{"type":"keyword"}}},"f":{"type":"flattened"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ doc, want string }{
		"scalars":        {`{"k":"a\n","o":{"k":1.50},"x":{"k":[1,"]",{}]}}`, `k=0a\n <o o.k=11.50 o>`},
		"null":           {` { "k" : [ null , true , false ] } `, "k=4 k=2true k=2false"},
		"other kinds":    {`{"k":{"a":[1]},"n":[7,[{"l":"x"}],null],"o":"y"}`, `k=3{"a":[1]} <n n.l=0x n>`},
		"dots":           {`{"o.k":1,"n.l":2,"k.l":3,"x.k":4,"off.k":5,"n.l.m":6}`, "<o o.k=11 o> <n n.l=12 n> <n n>"},
		"disabled":       {`{"off":{"k":1}}`, ""},
		"object":         {`{"f":{"a":"}"}}`, `f=3{"a":"}"}`},
		"escaped name":   {`{"\u006b":1}`, "k=11"},
		"twice":          {`{"k":1,"k":2}`, "k=11 k=12"},
		"nothing":        {`{}`, ""},
		"value is cut":   {`{"k":1`, "k=11 !the document is not valid JSON: a comma or a closing bracket is missing at byte 6"},
		"no document":    {`7`, "!the document is not valid JSON: not an object at byte 0"},
		"bad word":       {`{"k":nul}`, "!the document is not valid JSON: unexpected character at byte 5"},
		"name is no one": {`{k:1}`, "!the document is not valid JSON: a member name is missing at byte 1"},
		"no colon":       {`{"k" 1}`, "!the document is not valid JSON: a colon is missing at byte 5"},
		"too deep":       {`{"k":` + strings.Repeat("[", 1000), "!the document is not valid JSON: nested too deep at byte 1005"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := newEvents(tree)
			got.nulls = true
			var walker document.Walker
			if err := walker.Walk(tree, []byte(test.doc), got); err != nil {
				if core.CodeOf(err) != core.CodeInvalid {
					t.Errorf("the code is %s", core.CodeOf(err))
				}
				got.all = append(got.all, "!"+core.MessageOf(err))
			}
			if all := strings.Join(got.all, " "); all != test.want {
				t.Errorf("the sink gets %s, want %s", all, test.want)
			}
		})
	}
}

func TestLeaves(t *testing.T) {
	tests := map[string]struct{ raw, want string }{
		"object": {`{"a":{"b":["x",[2]],"c.d":true},"e":null}`, `a.b=0x a.b=12 a.c.d=2true e=4`},
		"names":  {`{"":{"\"":1}}`, `"=11`},
		"scalar": {`"x"`, "=0x"},
		"cut":    {`{"a":1,"b":`, "a=11"},
		"empty":  {`{"a":{},"b":[]}`, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var all []string
			document.Leaves([]byte(test.raw), func(path []byte, kind document.Kind, raw []byte) {
				all = append(all, fmt.Sprintf("%s=%d%s", path, kind, raw))
			})
			if got := strings.Join(all, " "); got != test.want {
				t.Errorf("the leaves are %s, want %s", got, test.want)
			}
		})
	}
}

// FuzzWalk compares a Walker with a Checker: for an accepted document both pass the same values, except for nulls. No number of it that a
// double may change is overlooked.
func FuzzWalk(f *testing.F) {
	tree := mapping.Song()
	long := regexp.MustCompile(`^-?[0-9]{16,}$`)
	for _, doc := range []string{
		`{"a":9007199254740993,"b":[-90071992547409930, 1.5e3]}`, "{\"a\":\t12345678901234567890123,\"b\":\"9007199254740993\"}",
		`{"files":[{"objectId":"a","fileSize":1,"info":{"a":[null,{"b":1}]}},null],"samples":{"donor.gender":"x"},"x":1}`,
		`{"info":{},"createdAt":"2020-01-01","analysisType":[{"version":null}]}`, `{"files.info":{"a":"\u00e9\ud83d"}}`, `{"a`,
	} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		var (
			checker document.Checker
			walker  document.Walker
		)
		want, got := newEvents(tree), newEvents(tree)
		_, rejected := checker.Check(tree, doc, want)
		err := walker.Walk(tree, doc, got)
		if rejected == nil && (err != nil || !slices.Equal(got.all, want.all)) {
			t.Errorf("the sink gets %v (%v), want %v", got.all, err, want.all)
		}
		document.Leaves(doc, func(_ []byte, kind document.Kind, raw []byte) {
			if rejected == nil && kind == document.KindNumber && long.Match(raw) && !document.MayBeInexact(doc) {
				t.Errorf("%s is overlooked", raw)
			}
		})
	})
}

// BenchmarkWalk measures reading an analysis of 1 KB.
func BenchmarkWalk(b *testing.B) {
	tree := mapping.Song()
	var doc strings.Builder
	doc.WriteString(`{"analysisId":"0f8fad5b-d9cb-469f-a165-70867728950e","createdAt":"2020-12-02T17:18:32.353334","files":[`)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 5 {
		if i > 0 {
			doc.WriteByte(',')
		}
		fmt.Fprintf(&doc, `{"objectId":"%016x%016x","fileName":"%x.vcf.gz","fileSize":%d,"fileType":"VCF","info":{"a":[1,2]}}`,
			r.Uint64(), r.Uint64(), r.Uint64(), r.IntN(1<<30))
	}
	doc.WriteString(`]}`)
	var walker document.Walker
	sink := nowhere{}
	b.SetBytes(int64(doc.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if err := walker.Walk(tree, []byte(doc.String()), sink); err != nil {
			b.Fatal(err)
		}
	}
}

// nowhere is a Sink that ignores all values.
type nowhere struct{}

func (nowhere) Enter(*mapping.Field)                        {}
func (nowhere) Leave(*mapping.Field)                        {}
func (nowhere) Value(*mapping.Field, document.Kind, []byte) {}
