package match_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index/embedded/evaluate/match"
	"tutti/internal/index/embedded/segment"
	"tutti/internal/index/mapping"
)

var (
	color = query.Field{Path: "color", Type: "keyword"}
	size  = query.Field{Path: "size", Type: "long"}
	kind  = query.Field{Path: "files.kind", Type: "keyword", Nested: []string{"files"}}
)

func terms(f query.Field, values ...string) *query.Node {
	return &query.Node{Op: query.Terms, Field: f, Terms: values}
}

func of(op query.Op, children ...*query.Node) *query.Node {
	return &query.Node{Op: op, Children: children}
}

func some(child *query.Node) *query.Node {
	return &query.Node{Op: query.Some, Path: "files", Children: []*query.Node{child}}
}

// documents returns a segment of six documents.
func documents(t *testing.T) *segment.Segment {
	t.Helper()
	tree, err := mapping.Parse([]byte(`{"properties":{"color":{"type":"keyword"},"size":{"type":"long"},"files":{"type":"nested","properties":{"kind":{"type":"keyword"}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	builder := segment.NewBuilder(tree)
	for i, body := range []string{
		`{"color":"red","size":1,"files":[{"kind":"vcf"},{"kind":"bam"}]}`, `{"color":["red","blue"],"size":5}`, `{"color":"Reddish","size":-3,"files":{"kind":"bam"}}`,
		`{"files":[{},{"kind":"vcf"}]}`, `{"color":"blue","size":9}`, `{"color":"red","size":2}`,
	} {
		if err := builder.Add(uint64(i+1), fmt.Sprint(i), []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	return builder.Segment()
}

// TestDocuments: the documents of each kind of condition, of which the last one of the segment was removed.
func TestDocuments(t *testing.T) {
	s := documents(t)
	deleted := roaring.BitmapOf(5)
	for name, tt := range map[string]struct {
		filter *query.Node
		want   string
	}{
		"all":               {nil, "[0 1 2 3 4]"},
		"nothing":           {of(query.Nothing), "[]"},
		"a term":            {terms(color, "red"), "[0 1]"},
		"terms":             {terms(color, "red", "none", "Reddish"), "[0 1 2]"},
		"numbers":           {terms(size, "5", "-3", "2"), "[1 2]"},
		"a range":           {&query.Node{Op: query.Range, Field: size, From: query.Bound{Set: true, Number: "1"}, To: query.Bound{Set: true, Inclusive: true, Number: "9"}}, "[1 4]"},
		"a pattern":         {&query.Node{Op: query.Patterns, Field: color, Patterns: []sqon.Pattern{"red*"}}, "[0 1]"},
		"a folded pattern":  {&query.Node{Op: query.Patterns, Field: color, Patterns: []sqon.Pattern{"*EDD*", "b?ue"}, Fold: true}, "[1 2 4]"},
		"exists":            {&query.Node{Op: query.Exists, Field: size}, "[0 1 2 4]"},
		"not":               {of(query.Not, terms(color, "red")), "[2 3 4]"},
		"and":               {of(query.And, terms(color, "red"), of(query.Not, terms(size, "5"))), "[0]"},
		"only not":          {of(query.And, of(query.Not, terms(color, "red")), of(query.Not, terms(size, "9"))), "[2 3]"},
		"or":                {of(query.Or, terms(color, "blue"), terms(size, "-3")), "[1 2 4]"},
		"some element":      {some(terms(kind, "vcf")), "[0 3]"},
		"no element":        {of(query.Not, some(terms(kind, "bam"))), "[1 3 4]"},
		"an element not":    {some(of(query.Not, terms(kind, "vcf"))), "[0 2 3]"},
		"no such field":     {terms(query.Field{Path: "none", Type: "keyword"}, "a"), "[]"},
		"no value of terms": {terms(size, "many"), "[]"},
	} {
		p := match.NewPlan()
		c := p.Clause(tt.filter, "")
		v := match.NewView(s, deleted, p)
		got := v.LiveDocuments(t.Context(), c, match.NewScratch())
		if text := fmt.Sprint(got.Bits.ToArray()); text != tt.want || got.Count != len(got.Bits.ToArray()) || got.All {
			t.Errorf("%s: documents %s, %d, all %t; want %s", name, text, got.Count, got.All, tt.want)
		}
	}
}

// TestClauses: equal conditions in one scope are one clause, whatever the order of parts that cost differently.
func TestClauses(t *testing.T) {
	p := match.NewPlan()
	red, blue := terms(color, "red"), terms(color, "blue")
	large := &query.Node{Op: query.Range, Field: size, From: query.Bound{Set: true, Number: "4"}}
	a := p.Clause(of(query.And, red, large), "")
	if p.Clause(of(query.And, large, terms(color, "red"), red), "") != a || p.Clause(of(query.And, red, large), "") != a {
		t.Error("the same condition is two clauses")
	}
	if p.Clause(of(query.Or, red, large), "") == a || p.Clause(of(query.And, blue, large), "") == a || p.Clause(red, "files") == p.Clause(red, "") {
		t.Error("two conditions are one clause")
	}
	bam := p.Clause(terms(kind, "bam"), "files")
	if p.DocumentsWith("files", bam) != p.Clause(some(terms(kind, "bam")), "") || p.Exists(kind) != p.Clause(some(&query.Node{Op: query.Exists, Field: kind}), "") {
		t.Error("the documents of a condition on elements are not those of its filter")
	}
}

// TestWhole: all documents of a segment without deletions are known to be all, and an intersection of them is not.
func TestWhole(t *testing.T) {
	p := match.NewPlan()
	all, red := p.Clause(nil, ""), p.Clause(terms(color, "red"), "")
	v := match.NewView(documents(t), nil, p)
	docs := v.LiveDocuments(t.Context(), all, match.NewScratch())
	if less := docs.Intersect(v.MatchRows(t.Context(), red, match.NewScratch())); !docs.All || docs.Count != 6 || less.All || less.Count != 3 {
		t.Errorf("%+v, %+v", docs, less)
	}
}

// TestCancelled: a cancelled search evaluates nothing further.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := match.NewPlan()
	c := p.Clause(terms(color, "red"), "")
	v := match.NewView(documents(t), nil, p)
	if got := v.LiveDocuments(ctx, c, match.NewScratch()); got.Count != 0 {
		t.Errorf("%d documents", got.Count)
	}
	many := roaring.New()
	many.AddRange(0, 3*match.BatchSize)
	match.NewScratch().Batches(ctx, many, func([]uint32) { t.Error("a batch is read") })
}
