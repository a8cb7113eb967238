package kinds_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index/kinds"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/kindstest"
	"tutti/internal/tools/testkit/dataset"
	"tutti/internal/upstream"
)

// TestCounterCounts: pages of random documents, in any form of writing, have the counts of a simple recursion over what encoding/json reads.
func TestCounterCounts(t *testing.T) {
	t.Parallel()
	root := known()
	root.Properties["k"] = &mapping.Field{Type: mapping.Nested, Properties: map[string]*mapping.Field{
		"a": {Type: mapping.Long}, "info": {Type: mapping.Flattened}, "o": {Type: mapping.Object},
	}}
	root.Properties["off"] = &mapping.Field{Type: mapping.Object, Params: map[string]json.RawMessage{"enabled": json.RawMessage("false")}}
	c := kinds.NewCounter(root, core.MaxKindsBytes) // for all pages, as in a run
	for seed := range uint64(kindstest.Cases(t, 3000)) {
		w := &writer{Rand: rand.New(rand.NewPCG(seed, 7))}
		want := simple{known: root, paths: map[string]core.PathKinds{}}
		forms := []form{w.object(0), w.object(0), w.object(0)}
		records := 1 + w.IntN(20)
		var all []string
		for range records {
			want.record = map[string]bool{}
			documents := 1 + w.IntN(2)
			if documents > 1 {
				c.Record()
			}
			for range documents {
				w.Reset()
				w.write(forms[w.IntN(len(forms))])
				if documents > 1 {
					c.Add([]byte(w.String()))
				} else {
					c.AddShaped([]byte(w.String()), shapeOf(t, w.String()))
				}
				want.add(t, w.String())
				all = append(all, w.String())
			}
		}
		kept := c.Take(int64(records))
		if diff := cmp.Diff(want.paths, maps.Collect(kept.All())); diff != "" || kept.Records() != int64(records) || kept.Documents() != int64(len(all)) {
			t.Fatalf("seed %d, %d records with %d documents (-want +got):\n%s\n%s", seed, kept.Records(), kept.Documents(), diff, strings.Join(all, "\n"))
		}
	}
}

// shapeOf returns the shape that a scanner finds.
func shapeOf(t testing.TB, document string) uint64 {
	t.Helper()
	item, err := upstream.NewScanner(upstream.Format{}, 0).Record(strings.NewReader(document), -1)
	if err != nil {
		t.Fatal(err)
	}
	return item.Shape
}

// form is a value that is written again and again with some changes: a scalar, a list, or an object with names.
type form struct {
	scalar string
	names  []string
	values []form
}

// scalars are those of the forms. Of the texts, those with -01 are whole dates, and a field of dates also takes 2020 and 1577836800000.
var scalars = []string{
	`null`, `true`, `false`, `0`, `-1.5e3`, `9007199254740993`, `12345678901234567890123`, `"x"`, `""`, `"\\"`, `"\""`, `"a\\\"b,\"c\":{"`,
	`"é ] } long enough for words of eight"`, `"2020-01-01"`, `"2020-01-01T00:00:00Z"`, `"2020"`, `"1577836800000"`, `"2020-01\u002d01"`, `"\u0032020"`,
	`"unknown"`, `"00000000-0000-0000-0000-000000000000"`,
}

// names have dots, which mean objects, and letters that are not written as they are.
var names = []string{
	"", "a", "b", "c", "long name of a member", "é", "a.b", "a.b.c", ".", "a.", ".a", "a..b", " ", "a. .b", "info", "a.info", "a.info.b", "info.a", "k", "k.a", "k.a.b", "k.o",
	"k.o.n", "k.info.x", "k.n", "id", "id.x", "off", "off.a", `"`, `\`, `\n`, "\n", `a":1,"b`, "o", "n",
}

// writer generates forms and writes them.
type writer struct {
	*rand.Rand
	strings.Builder
}

func (w *writer) object(depth int) form {
	f := form{names: []string{}}
	for range w.IntN(7) {
		f.names = append(f.names, names[w.IntN(len(names))])
		f.values = append(f.values, w.value(depth+1))
	}
	return f
}

func (w *writer) value(depth int) form {
	switch n := w.IntN(6); {
	case n == 0 && depth < 5:
		return w.object(depth)
	case n == 1 && depth < 5:
		var f form
		for range w.IntN(4) {
			f.values = append(f.values, w.value(depth+1))
		}
		return f
	default:
		return form{scalar: scalars[w.IntN(len(scalars))]}
	}
}

func (w *writer) space() {
	if w.IntN(12) == 0 {
		w.WriteString([]string{" ", "\n", "\t\r ", "  "}[w.IntN(4)])
	}
}

func (w *writer) write(f form) {
	w.space()
	defer w.space()
	if f.scalar != "" {
		if w.IntN(8) == 0 {
			f.scalar = scalars[w.IntN(len(scalars))]
		}
		w.WriteString(f.scalar)
		return
	}
	order := make([]int, 0, len(f.values))
	for i := range f.values {
		switch w.IntN(20) { // a member is missing, is there twice, or is elsewhere
		case 0:
		case 1:
			order = append(order, i, i)
		case 2:
			order = append([]int{i}, order...)
		default:
			order = append(order, i)
		}
	}
	brackets := "[]"
	if f.names != nil {
		brackets = "{}"
	}
	w.WriteByte(brackets[0])
	w.space()
	for n, i := range order {
		if n > 0 {
			w.WriteByte(',')
		}
		if f.names != nil {
			w.space()
			w.name(f.names[i])
			w.space()
			w.WriteByte(':')
		}
		w.write(f.values[i])
	}
	w.WriteByte(brackets[1])
}

// name writes a name, some of its letters with escapes.
func (w *writer) name(name string) {
	often := 2 + w.IntN(60)
	w.WriteByte('"')
	for _, r := range name {
		switch short := strings.IndexRune("\"\\\n", r); {
		case w.IntN(often) == 0:
			fmt.Fprintf(w, `\u%04x`, r)
		case short >= 0:
			w.WriteString([]string{`\"`, `\\`, `\n`}[short])
		default:
			w.WriteRune(r)
		}
	}
	w.WriteByte('"')
}

// simple counts what encoding/json reads. record has the kinds of the current record, by path and kind.
type simple struct {
	known  *mapping.Field
	paths  map[string]core.PathKinds
	record map[string]bool
}

func (s *simple) add(t *testing.T, document string) {
	t.Helper()
	if !json.Valid([]byte(document)) {
		t.Fatalf("%s is not JSON", document)
	}
	s.members(json.NewDecoder(strings.NewReader(document)), "")
}

// members reads an object of which above is the path, with a dot after it.
func (s *simple) members(d *json.Decoder, above string) {
	_, _ = d.Token()
	for d.More() {
		name, _ := d.Token()
		var value json.RawMessage
		_ = d.Decode(&value)
		s.member(above, strings.Split(name.(string), "."), value)
	}
	_, _ = d.Token()
}

func (s *simple) member(above string, names []string, value json.RawMessage) {
	path := above + names[0]
	if strings.TrimSpace(names[0]) == "" { // the name of no field
		return
	}
	if f := s.known.Lookup(path); f != nil && (!f.Container() || f.Disabled()) {
		return
	}
	if len(names) == 1 {
		s.value(path, names[0], value, false)
		return
	}
	if s.count(path, "object", func(p *core.PathKinds) *int64 { return &p.Objects }); names[0] != mapping.ReservedInfo {
		s.member(path+".", names[1:], value)
	}
}

func (s *simple) value(path, name string, value json.RawMessage, element bool) {
	switch d := json.NewDecoder(bytes.NewReader(value)); value[0] {
	case '{':
		s.count(path, "object", func(p *core.PathKinds) *int64 { note(&p.Lists, element); return &p.Objects })
		if name != mapping.ReservedInfo {
			s.members(d, path+".")
		}
	case '[':
		_, _ = d.Token()
		for d.More() {
			var each json.RawMessage
			_ = d.Decode(&each)
			s.value(path, name, each, true)
		}
	case '"':
		s.count(path, "text", func(p *core.PathKinds) *int64 {
			note(&p.Undated, !strings.Contains(string(value), "-01"))
			note(&p.NoDate, !strings.Contains(string(value), "-01") && string(value) != `"2020"` && string(value) != `"1577836800000"`)
			return &p.Texts
		})
	case 't', 'f':
		s.count(path, "boolean", func(p *core.PathKinds) *int64 { return &p.Booleans })
	case 'n':
	default:
		s.count(path, "number", func(p *core.PathKinds) *int64 { return &p.Numbers })
	}
}

// note sets what counts once in a page.
func note(n *int64, is bool) {
	if is {
		*n = 1
	}
}

// count counts a kind at a path once in a record, unless the type of the path is known.
func (s *simple) count(path, kind string, of func(*core.PathKinds) *int64) {
	if s.known.Lookup(path) != nil {
		return
	}
	p := s.paths[path]
	if n := of(&p); !s.record[path+" "+kind] {
		s.record[path+" "+kind] = true
		*n++
	}
	s.paths[path] = p
}

// TestCounterAllocates: the documents of a page with the paths of the page before allocate nothing.
func TestCounterAllocates(t *testing.T) {
	all := dataset.GenerateAnalyses(1, "S1", 100)
	c := kinds.NewCounter(mapping.Song(), core.MaxKindsBytes)
	shapes := make([]uint64, len(all))
	for i, a := range all {
		shapes[i] = shapeOf(t, string(a.Body))
	}
	page := func() {
		for i, a := range all {
			c.Record()
			c.Add(a.Body)
			c.AddShaped(a.Body, shapes[i])
		}
	}
	page()
	c.Take(int64(len(all)))
	page()
	if n := testing.AllocsPerRun(10, page); n != 0 {
		t.Errorf("a page allocates %v times", n)
	}
}
