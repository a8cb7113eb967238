package view_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
	"tutti/internal/search/view"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const mappings = `{"properties":{
	"analysisId":{"type":"keyword"}, "studyId":{"type":"keyword"}, "state":{"type":"keyword"}, "title":{"type":"text"},
	"count":{"type":"long"}, "score":{"type":"scaled_float","scaling_factor":100}, "study":{"type":"alias","path":"studyId"},
	"files":{"type":"nested","properties":{"type":{"type":"keyword"},"info":{"properties":{"note":{"type":"keyword"}}}}},
	"data":{"properties":{"sex":{"type":"keyword"},"visits":{"type":"nested","properties":{"at":{"type":"date"}}}}}
}}`

type source string

func (s source) Mapping(context.Context, string) (json.RawMessage, error) {
	return json.RawMessage(s), nil
}

// model makes the only catalogue of a configuration of one folder.
func model(t *testing.T, base, rule string) *catalogue.Model {
	t.Helper()
	folder := fstest.MapFS{"base.json": {Data: []byte(base)}}
	if rule != "" {
		folder["access.json"] = &fstest.MapFile{Data: []byte(rule)}
	}
	set, err := definition.LoadFS(folder, "configs", definition.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Definitions) != 1 || set.Definitions[0].Err != nil {
		t.Fatalf("got %+v", set)
	}
	m, problem := catalogue.Load(t.Context(), set.Definitions[0], source(mappings))
	if problem != nil {
		t.Fatal(problem)
	}
	return m
}

// TestDefaultAccess: every request about a catalogue without an access rule has the filter of the default access.
func TestDefaultAccess(t *testing.T) {
	nothing := &query.Node{Op: query.Nothing}
	anonymous, known, system := core.Principal{}, core.Principal{ID: "key:1", Scopes: []string{"S1.READ"}}, core.Principal{ID: "key:2", System: true}
	for _, c := range []struct {
		access core.DefaultAccess
		who    core.Principal
		want   *query.Node
	}{
		{"", anonymous, nil},
		{core.AccessPublic, anonymous, nil},
		{core.AccessAuthenticated, anonymous, nothing},
		{core.AccessAuthenticated, known, nil},
		{core.AccessAuthenticated, system, nil},
		{core.AccessDeny, anonymous, nothing},
		{core.AccessDeny, known, nothing},
		{core.AccessDeny, system, nil},
		{"unknown", known, nothing},
	} {
		t.Run(fmt.Sprintf("%s %+v", c.access, c.who), func(t *testing.T) {
			d := model(t, base, "").Definition()
			d.DefaultAccess = c.access
			m, problem := catalogue.Load(t.Context(), d, source(mappings))
			if problem != nil {
				t.Fatal(problem)
			}
			if got := m.Catalogue().DefaultAccess; got != c.access {
				t.Errorf("the catalogue says %q", got)
			}
			e := &engine{}
			v := view.New(e, view.Config{}).View(m, c.who)
			asked := exactly("state", "OPEN")
			if _, err := v.Search(t.Context(), view.KindFacets, []index.SearchRequest{{}, {Filter: asked}}); err != nil {
				t.Fatal(err)
			}
			if err := v.Stream(t.Context(), view.KindDownload, index.StreamRequest{}, func([]index.Hit) error { return nil }); err != nil {
				t.Fatal(err)
			}
			want := []*query.Node{c.want, query.Both(c.want, asked), c.want}
			if diff := cmp.Diff(want, []*query.Node{e.reqs[0].Filter, e.reqs[1].Filter, e.stream.Filter}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLog: a request has one log line, with the clauses of its own filter, what it found, and no values.
func TestLog(t *testing.T) {
	var out bytes.Buffer
	rule := `{"field":"studyId","scope":"{value}.READ"}`
	s := view.New(&engine{total: 7}, view.Config{Logger: slog.New(slog.NewJSONHandler(&out, nil))})
	m, who := model(t, base, rule), core.Principal{ID: "key:1", Scopes: []string{"S1.READ"}}
	filter := &query.Node{Op: query.And, Children: []*query.Node{exactly("state", "SECRET"), {Op: query.Not, Children: []*query.Node{exactly("studyId", "S2")}}}}
	for _, c := range []struct {
		run  func(*view.View) error
		want string
	}{
		{func(*view.View) error { return nil }, ""},
		{func(v *view.View) error {
			_, err := v.Search(t.Context(), view.KindMixed, []index.SearchRequest{{Filter: exactly("state", "x"), Total: true}, {Filter: filter}})
			if err == nil {
				_, err = v.Search(t.Context(), view.KindFacets, []index.SearchRequest{{}})
			}
			return err
		}, `"catalogue":"c","kind":"mixed","clauses":2,"hits":7,"duration":`},
		{func(v *view.View) error {
			_, err := v.Search(t.Context(), view.KindFacets, []index.SearchRequest{{}})
			return err
		}, `"catalogue":"c","kind":"facets","clauses":0,"duration":`},
		{func(v *view.View) error {
			return v.Stream(t.Context(), view.KindDownload, index.StreamRequest{Filter: filter}, func([]index.Hit) error { return nil })
		}, `"catalogue":"c","kind":"download","clauses":2,"hits":1,"duration":`},
	} {
		out.Reset()
		v := s.View(m, who)
		if err := c.run(v); err != nil {
			t.Fatal(err)
		}
		v.Log(t.Context())
		lines := 0
		if c.want != "" {
			lines = 1
		}
		if got := out.String(); !strings.Contains(got, c.want) || strings.Count(got, "\n") != lines || strings.Contains(got, "SECRET") {
			t.Errorf("got %s, want %d line with %s", got, lines, c.want)
		}
	}
}

const base = `{"catalogId":"c","documentType":"analysis","esIndex":"analyses"}`

// engine records requests.
type engine struct {
	alias  string
	reqs   []index.SearchRequest
	stream index.StreamRequest
	err    error
	// total is that of each result.
	total int64
}

func (e *engine) Search(_ context.Context, alias string, reqs []index.SearchRequest) ([]index.SearchResult, error) {
	e.alias, e.reqs = alias, reqs
	results := make([]index.SearchResult, len(reqs))
	for i := range results {
		results[i].Total = e.total
	}
	return results, e.err
}

func (e *engine) Stream(_ context.Context, alias string, req index.StreamRequest, each func([]index.Hit) error) error {
	e.alias, e.stream = alias, req
	if e.err != nil {
		return e.err
	}
	return each([]index.Hit{{ID: "1"}})
}

func keyword(path string) query.Field { return query.Field{Path: path, Type: "keyword"} }

func exactly(path string, values ...string) *query.Node {
	return &query.Node{Op: query.Terms, Field: keyword(path), Terms: values}
}

// TestEveryRequestHasTheAccessFilter: every kind of request has the catalogue's access filter.
func TestEveryRequestHasTheAccessFilter(t *testing.T) {
	nothing := &query.Node{Op: query.Nothing}
	const public = `{"op":"in","content":{"fieldName":"state","value":"OPEN"}}`
	rule := func(public string) string {
		return `{"field":"studyId","scope":"{value}.READ","public":` + public + `}`
	}
	reads := func(scopes ...string) core.Principal { return core.Principal{ID: "key:1", Scopes: scopes} }
	for _, c := range []struct {
		name, rule string
		who        core.Principal
		want       *query.Node
	}{
		{"no rule", "", core.Principal{}, nil},
		{"nobody", rule("null"), core.Principal{}, nothing},
		{"nobody, and something is public", rule(public), core.Principal{}, exactly("state", "OPEN")},
		{"all is public", rule("{}"), core.Principal{}, nil},
		{"a scope", rule("null"), reads("S1.READ"), exactly("studyId", "S1")},
		{"other scopes", rule("null"), reads("S1.WRITE", ".READ", "READ", "S1.READ.x"), nothing},
		{"scopes with characters of SQON", rule("null"), reads("*.READ", "__missing__.READ", "set_id:1.READ", "S1.READ", "S1.READ"), exactly("studyId", "*", "S1", "__missing__", "set_id:1")},
		{"scopes beside what is public", rule(public), reads("S1.READ"), &query.Node{Op: query.Or, Children: []*query.Node{exactly("studyId", "S1"), exactly("state", "OPEN")}}},
		{"the system", rule("null"), core.Principal{ID: "key:1", System: true}, nil},
		{"a field that the mapping lacks", `{"field":"project","scope":"{value}.READ","public":` + public + `}`, reads("S1.READ"), nothing},
		{"a field whose values are analyzed", `{"field":"title","scope":"{value}.READ"}`, reads("S1.READ"), nothing},
		{"a field of a type with other values", `{"field":"count","scope":"{value}.READ"}`, reads("S1.READ"), nothing},
		{"a public set", rule(`{"op":"in","content":{"fieldName":"studyId","value":"set_id:mine"}}`), core.Principal{ID: "me"}, nothing},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &engine{}
			v := view.New(e, view.Config{Sets: sets{}}).View(model(t, base, c.rule), c.who)
			asked := exactly("files.type", "bam")
			own := []index.SearchRequest{
				{Total: true},
				{Filter: asked, Hits: &index.HitsRequest{Size: 1}},
				{Filter: asked, Facets: []index.Facet{{Field: keyword("state"), Missing: true}}},
			}
			if _, err := v.Search(t.Context(), view.KindHits, own); err != nil {
				t.Fatal(err)
			}
			if err := v.Stream(t.Context(), view.KindDownload, index.StreamRequest{Filter: asked}, func([]index.Hit) error { return nil }); err != nil {
				t.Fatal(err)
			}
			want := []*query.Node{c.want, query.Both(c.want, asked), query.Both(c.want, asked)}
			got := []*query.Node{e.reqs[0].Filter, e.reqs[1].Filter, e.reqs[2].Filter}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(want[1], e.stream.Filter); diff != "" {
				t.Error("stream: " + diff)
			}
			if e.reqs[1].Hits.Restricted != (c.want != nil) || own[1].Hits.Restricted {
				t.Errorf("asked %+v, and the caller's request is %+v", e.reqs[1].Hits, own[1].Hits)
			}
			if e.alias != "analyses" || own[0].Filter != nil {
				t.Errorf("asked of %q; the caller's request was changed: %t", e.alias, own[0].Filter != nil)
			}
		})
	}
}

type sets struct{}

func (sets) Members(_ context.Context, owner, id string) ([]string, error) {
	if owner != "me" || id != "mine" {
		return nil, core.NewError(core.CodeNotFound, "there is no saved set "+id)
	}
	return []string{"S1"}, nil
}

func TestSetsAreTheirOwners(t *testing.T) {
	const filter = `{"op":"in","content":{"fieldName":"studyId","value":["set_id:mine"]}}`
	m := model(t, base, "")
	lower := func(cfg view.Config, who string) (*query.Node, error) {
		v := view.New(&engine{}, cfg).View(m, core.Principal{ID: who})
		f, err := v.Parse(json.RawMessage(filter))
		if err != nil {
			t.Fatal(err)
		}
		_, facetErr := v.Facet(t.Context(), f, "state", false)
		n, err := v.Lower(t.Context(), f)
		if (err == nil) != (facetErr == nil) {
			t.Errorf("a filter gives %v, a facet %v", err, facetErr)
		}
		return n, err
	}
	if n, err := lower(view.Config{Sets: sets{}}, "me"); err != nil || !cmp.Equal(n, exactly("studyId", "S1")) {
		t.Errorf("got %+v, %v", n, err)
	}
	for name, try := range map[string]func() (*query.Node, error){
		"another's": func() (*query.Node, error) { return lower(view.Config{Sets: sets{}}, "you") },
		"no sets":   func() (*query.Node, error) { return lower(view.Config{}, "me") },
	} {
		_, err := try()
		if core.CodeOf(err) != core.CodeInvalid || !strings.HasPrefix(core.MessageOf(err), "there is no saved set mine") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestParse(t *testing.T) {
	v := view.New(&engine{}, view.Config{}).View(model(t, base, ""), core.Principal{})
	for _, c := range []struct{ filter, message, pointer string }{
		{``, "", ""},
		{`null`, "", ""},
		{`{}`, "", ""},
		{`{"op":"in","content":{"fieldName":"studi","value":"a"}}`, "studi", "/content/fieldName"},
		{`{"op":"am"}`, "am", "/op"},
	} {
		_, err := v.Parse(json.RawMessage(c.filter))
		if c.message == "" {
			if err != nil {
				t.Errorf("%s: %v", c.filter, err)
			}
			continue
		}
		e, ok := errors.AsType[*core.Error](err)
		if !ok || e.Code != core.CodeInvalid || len(e.Violations) == 0 || e.Violations[0].Pointer != c.pointer || !strings.Contains(e.Violations[0].Message, c.message) {
			t.Errorf("%s: got %#v", c.filter, err)
		}
	}
}

func TestFields(t *testing.T) {
	plain := view.New(&engine{}, view.Config{}).View(model(t, base, ""), core.Principal{})
	prefixed := view.New(&engine{}, view.Config{}).View(
		model(t, `{"catalogId":"c","documentType":"record","esIndex":"records","nestingPrefix":"data"}`, ""), core.Principal{})
	for _, c := range []struct {
		view *view.View
		name string
		want query.Field
	}{
		{plain, "studyId", keyword("studyId")},
		{plain, "study", keyword("studyId")},
		{plain, "score", query.Field{Path: "score", Type: "scaled_float", Scale: 100}},
		{plain, "files.info.note", query.Field{Path: "files.info.note", Type: "keyword", Nested: []string{"files"}}},
		{plain, "files", query.Field{}},
		{plain, "files.info", query.Field{}},
		{plain, "no", query.Field{}},
		{prefixed, "sex", keyword("data.sex")},
		{prefixed, "visits.at", query.Field{Path: "data.visits.at", Type: "date", Nested: []string{"data.visits"}}},
		{prefixed, "data.sex", query.Field{}},
	} {
		got, ok := c.view.Field(c.name)
		if !cmp.Equal(got, c.want) || ok != (c.want.Path != "") {
			t.Errorf("%s: got %+v, %t", c.name, got, ok)
		}
	}
	for _, c := range []struct {
		view   *view.View
		filter string
		want   *query.Node
	}{
		{
			plain, `{"op":"not-in","content":{"fieldName":"files.info","value":"__missing__"}}`,
			&query.Node{Op: query.Some, Path: "files", Children: []*query.Node{{
				Op: query.Exists, Field: query.Field{Path: "files.info.note", Type: "keyword", Nested: []string{"files"}},
			}}},
		},
		{
			prefixed, `{"op":"not-in","content":{"fieldName":"visits","value":"__missing__"}}`,
			&query.Node{Op: query.Some, Path: "data.visits", Children: []*query.Node{{Op: query.Everything}}},
		},
	} {
		f, err := c.view.Parse(json.RawMessage(c.filter))
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.view.Lower(t.Context(), f)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", c.filter, err, diff)
		}
	}
}

func TestIdentity(t *testing.T) {
	for _, c := range []struct{ path, want string }{
		{"", "_id"}, {"analysisId", "analysisId"}, {"no", "_id"}, {"count", "_id"}, {"files.type", "_id"}, {"files", "_id"},
	} {
		s := view.New(&engine{}, view.Config{Identity: func(alias string) string {
			if alias != "analyses" {
				t.Errorf("asked for %q", alias)
			}
			return c.path
		}})
		if got := s.View(model(t, base, ""), core.Principal{}).Identity(); got.Field.Path != c.want || got.Descending {
			t.Errorf("%q: got %+v", c.path, got)
		}
	}
	if got := view.New(&engine{}, view.Config{}).View(model(t, base, ""), core.Principal{}).Identity(); got.Field.Path != "_id" {
		t.Errorf("got %+v", got)
	}
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	e := &engine{}
	v := view.New(e, view.Config{Metrics: view.NewMetrics(reg)}).View(model(t, base, ""), core.Principal{ID: "me"})
	if _, err := v.Search(t.Context(), view.KindFacets, nil); err != nil {
		t.Fatal(err)
	}
	e.err = core.NewError(core.CodeUnavailable, "the index does not answer")
	if err := v.Stream(t.Context(), view.KindSet, index.StreamRequest{}, nil); !errors.Is(err, e.err) {
		t.Errorf("got %v", err)
	}
	families, err := reg.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "tutti_search_duration_seconds" || len(families[0].GetMetric()) != 2 {
		t.Fatalf("%v, %v", families, err)
	}
	for _, m := range families[0].GetMetric() {
		if m.GetHistogram().GetSampleCount() != 1 || m.GetLabel()[0].GetValue() != "c" {
			t.Errorf("got %v", m)
		}
	}
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
	if v.Who().ID != "me" || v.Model().Definition().ID != "c" {
		t.Error("the view has lost whose it is")
	}
}
