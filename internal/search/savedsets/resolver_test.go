package savedsets_test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
	"tutti/internal/search/graphql"
	"tutti/internal/search/savedsets"
	"tutti/internal/search/sets"
	"tutti/internal/search/view"
	"tutti/internal/tools/storetest"
)

// setEngine returns the same documents to every caller, and records the requests.
type setEngine struct {
	hits    []index.Hit
	total   int64
	streams []index.StreamRequest
	counts  []index.SearchRequest
	// given is the number of documents that were streamed.
	given int
}

func (e *setEngine) Search(_ context.Context, _ string, reqs []index.SearchRequest) ([]index.SearchResult, error) {
	e.counts = append(e.counts, reqs...)
	return []index.SearchResult{{Total: e.total}}, nil
}

func (e *setEngine) Stream(_ context.Context, _ string, req index.StreamRequest, each func([]index.Hit) error) error {
	e.streams = append(e.streams, req)
	for i := range e.hits {
		e.given++
		if err := each(e.hits[i : i+1]); err != nil {
			return err
		}
	}
	return nil
}

type setMapping string

func (m setMapping) Mapping(context.Context, string) (json.RawMessage, error) {
	return json.RawMessage(m), nil
}

// setWorld has the saved sets of a catalogue whose access rule is a scope.
type setWorld struct {
	savedsets.Resolver
	engine   *setEngine
	searches *view.Service
	model    *catalogue.Model
}

func newSetWorld(t *testing.T, cfg sets.Config) *setWorld {
	t.Helper()
	set, err := definition.LoadFS(fstest.MapFS{
		"base.json":   {Data: []byte(`{"catalogId":"c","documentType":"analysis","esIndex":"analyses","enableSets":true}`)},
		"access.json": {Data: []byte(`{"field":"studyId","scope":"{value}.READ","public":null}`)},
	}, "configs", definition.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, problem := catalogue.Load(t.Context(), set.Definitions[0], setMapping(`{"runtime":{"made":{"type":"keyword"}},"properties":{
		"studyId":{"type":"keyword"},"name":{"type":"text","fields":{"raw":{"type":"keyword"}}},"count":{"type":"long"},
		"files":{"type":"nested","properties":{"name":{"type":"keyword"}}}}}`))
	if problem != nil {
		t.Fatal(problem)
	}
	s, err := sets.New(storetest.Open(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	w := &setWorld{Resolver: savedsets.New(s), engine: &setEngine{}, model: m}
	w.searches = view.New(w.engine, view.Config{Sets: s})
	w.engine.hits = []index.Hit{
		{ID: "A2", Source: []byte(`{"studyId":"S1","name":"b","count":7,"files":[{"name":"x"},{"name":"y \"z\""}]}`)},
		{ID: "A1", Source: []byte(`{"studyId":"S1","name":["a","b",null],"files":[{"name":"x"},{}],"made":{}}`)},
	}
	return w
}

func (w *setWorld) as(id string) *view.View {
	return w.searches.View(w.model, core.Principal{ID: id, Scopes: []string{"S1.READ"}})
}

func keywordAt(path string) query.Field { return query.Field{Path: path, Type: "keyword"} }

func wantFault(t *testing.T, err error, code core.Code, message string) {
	t.Helper()
	if core.CodeOf(err) != code || core.MessageOf(err) != message {
		t.Errorf("got %s %q, want %s %q", core.CodeOf(err), core.MessageOf(err), code, message)
	}
}

// TestSavedSetHasWhatItsOwnerSees: the members are the values of the field, in the order of the documents that the caller sees.
func TestSavedSetHasWhatItsOwnerSees(t *testing.T) {
	granted := &query.Node{Op: query.Terms, Field: keywordAt("studyId"), Terms: []string{"S1"}}
	asked := &query.Node{Op: query.Terms, Field: keywordAt("name.raw"), Terms: []string{"b"}}
	for _, c := range []struct {
		name, path string
		field      query.Field
		source     index.Source
		want       []string
	}{
		{"ids", "_id", keywordAt("_id"), index.Source{None: true}, []string{"A2", "A1"}},
		{"a field", "studyId", keywordAt("studyId"), index.Source{Paths: []string{"studyId"}}, []string{"S1"}},
		{"a multi-field", "name__raw", keywordAt("name.raw"), index.Source{Paths: []string{"name"}}, []string{"b", "a"}},
		{"a nested field", "files.name", query.Field{Path: "files.name", Type: "keyword", Nested: []string{"files"}}, index.Source{Paths: []string{"files.name"}}, []string{"x", `y "z"`}},
		{"numbers", "count", query.Field{Path: "count", Type: "long"}, index.Source{Paths: []string{"count"}}, []string{"7"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newSetWorld(t, sets.Config{})
			r := graphql.SetRequest{
				Type: "analysis", UserID: "u", SQON: json.RawMessage(`{"x":1}`), Filter: asked, Path: c.path, Field: c.field,
				Sort: []index.Sort{{Field: keywordAt("_id"), Descending: true}},
			}
			saved, err := w.Save(t.Context(), w.as("key:1"), r)
			if err != nil {
				t.Fatal(err)
			}
			want := graphql.Set{ID: saved.ID, CreatedAt: saved.CreatedAt, IDs: c.want, Path: c.path, Size: len(c.want), SQON: r.SQON, Type: "analysis", UserID: "u"}
			if diff := cmp.Diff(want, saved); diff != "" {
				t.Error(diff)
			}
			stream := []index.StreamRequest{{
				Filter: query.Both(granted, asked), Sort: r.Sort, Source: c.source, Caller: core.Caller{ID: "key:1", Known: true},
			}}
			if diff := cmp.Diff(stream, w.engine.streams); diff != "" {
				t.Error(diff)
			}
			for _, count := range w.engine.counts {
				if diff := cmp.Diff(query.Both(granted, asked), count.Filter); diff != "" {
					t.Error(diff)
				}
			}
			found, total, err := w.Find(t.Context(), "key:1", graphql.SetQuery{Members: true, First: 10})
			if diff := cmp.Diff([]graphql.Set{want}, found); diff != "" || total != 1 || err != nil {
				t.Error(diff, total, err)
			}
			// A filter that names it reads its members.
			view := w.as("key:1")
			f, err := view.Parse(json.RawMessage(`{"op":"in","content":{"fieldName":"studyId","value":["set_id:` + saved.ID + `"]}}`))
			if err != nil {
				t.Fatal(err)
			}
			if n, err := view.Lower(t.Context(), f); err != nil || len(n.Terms) != len(c.want) {
				t.Errorf("%+v, %v", n, err)
			}
			if _, err := w.as("key:2").Lower(t.Context(), f); core.CodeOf(err) != core.CodeInvalid {
				t.Error(err)
			}
		})
	}
}

func TestSavedSetIsRefused(t *testing.T) {
	ids := graphql.SetRequest{Path: "_id", Field: keywordAt("_id")}
	t.Run("to nobody", func(t *testing.T) {
		w := newSetWorld(t, sets.Config{})
		_, err := w.Save(t.Context(), w.as(""), ids)
		wantFault(t, err, core.CodeForbidden, "saved sets require a token: a set belongs to the caller who saved it")
		if len(w.engine.streams) > 0 {
			t.Error("documents were read")
		}
	})
	t.Run("for too many documents", func(t *testing.T) {
		w := newSetWorld(t, sets.Config{MaxMembers: 5})
		w.engine.total = 6
		_, err := w.Save(t.Context(), w.as("key:1"), ids)
		wantFault(t, err, core.CodeInvalid, "the set would have 6 members, more than the limit of 5")
		if len(w.engine.streams) > 0 {
			t.Error("documents were read")
		}
	})
	t.Run("for too many values", func(t *testing.T) {
		w := newSetWorld(t, sets.Config{MaxMembers: 1})
		_, err := w.Save(t.Context(), w.as("key:1"), graphql.SetRequest{Path: "name", Field: query.Field{Path: "name", Type: "text"}})
		wantFault(t, err, core.CodeInvalid, "the set would have 2 members, more than the limit of 1")
	})
	t.Run("for too large values", func(t *testing.T) {
		w := newSetWorld(t, sets.Config{MaxBytes: 1})
		w.engine.hits = append(w.engine.hits, index.Hit{ID: "last", Source: []byte(`{"name":"x"}`)})
		_, err := w.Save(t.Context(), w.as("key:1"), graphql.SetRequest{Path: "name", Field: query.Field{Path: "name", Type: "text"}})
		if core.CodeOf(err) != core.CodeInvalid || !strings.HasSuffix(core.MessageOf(err), "bytes, more than the limit of 1") || w.engine.given == len(w.engine.hits) {
			t.Errorf("%v after %d pages", err, w.engine.given)
		}
	})
	t.Run("for a field that no document has", func(t *testing.T) {
		w := newSetWorld(t, sets.Config{})
		_, err := w.Save(t.Context(), w.as("key:1"), graphql.SetRequest{Path: "made", Field: keywordAt("made")})
		wantFault(t, err, core.CodeInvalid, `the field "made" is in no document`)
	})
}

// TestListedMembersAreBounded: sets that have too many members together are listed in pages, as the hint says, or without their members.
func TestListedMembersAreBounded(t *testing.T) {
	w := newSetWorld(t, sets.Config{MaxMembers: 600_000, MaxBytes: 32 << 20})
	source := []byte(`{"count":[0`)
	for i := range 500_000 {
		source = strconv.AppendInt(append(source, ','), int64(i+1), 10)
	}
	w.engine.hits = []index.Hit{{ID: "A1", Source: append(source, "]}"...)}}
	for range 2 {
		if _, err := w.Save(t.Context(), w.as("key:1"), graphql.SetRequest{Type: "analysis", Path: "count", Field: query.Field{Path: "count", Type: "long"}}); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := w.Find(t.Context(), "key:1", graphql.SetQuery{Members: true, First: 2})
	wantFault(t, err, core.CodeInvalid, "these sets have 1000002 members together, more than 1000000")
	if hint := core.HintOf(err); hint != "request fewer sets at once, with first and offset" {
		t.Errorf("the hint is %q", hint)
	}
	for _, q := range []graphql.SetQuery{{Members: true, First: 1}, {Members: true, First: 1, Offset: 1}, {First: 2}} {
		if found, _, err := w.Find(t.Context(), "key:1", q); err != nil || len(found) != q.First || found[0].Size != 500_001 || q.Members != (len(found[0].IDs) == 500_001) {
			t.Errorf("%+v: %d sets, %v", q, len(found), err)
		}
	}
}

func TestSavedSetsAreFound(t *testing.T) {
	var at time.Time
	w := newSetWorld(t, sets.Config{Now: func() time.Time { return at }})
	var ids []string
	for i, path := range []string{"_id", "files.name", "studyId"} {
		at = time.Date(2026, 3, 1+i, 12, 0, 0, 0, time.UTC)
		field := keywordAt(path)
		saved, err := w.Save(t.Context(), w.as("key:1"), graphql.SetRequest{Type: "analysis", Path: path, Field: field})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, saved.ID)
	}
	for _, c := range []struct{ name, filter, want string }{
		{"all", `{}`, "studyId files.name _id"},
		{"by id", `{"op":"in","content":{"fieldName":"setId","value":"` + ids[1] + `"}}`, "files.name"},
		{"by another's name of it", `{"op":"in","content":{"fieldName":"id","value":["` + ids[0] + `","` + ids[2] + `"]}}`, "studyId _id"},
		{"by the id of its node", `{"op":"in","content":{"fieldName":"_id","value":"` + ids[2] + `"}}`, "studyId"},
		{"not by id", `{"op":"not-in","content":{"fieldName":"setId","value":"` + ids[1] + `"}}`, "studyId _id"},
		{"by size", `{"op":"gte","content":{"fieldName":"size","value":2}}`, "files.name _id"},
		{"by time", `{"op":"lt","content":{"fieldName":"createdAt","value":"2026-03-02T12:00:00Z"}}`, "_id"},
		{"by members", `{"op":"in","content":{"fieldName":"ids","value":["A1","x"]}}`, "files.name _id"},
		{"by a pattern", `{"op":"wildcard","content":{"fieldNames":["path","type"],"value":"*NAME*"}}`, "files.name"},
		{"by a part of a value", `{"op":"in","content":{"fieldName":"path","value":"st*"}}`, "studyId"},
		{"by a missing value", `{"op":"in","content":{"fieldName":"userId","value":"__missing__"}}`, "studyId files.name _id"},
		{"by several", `{"op":"and","content":[{"op":"in","content":{"fieldName":"type","value":"analysis"}},{"op":"not","content":[{"op":"in","content":{"fieldName":"path","value":"_id"}}]}]}`, "studyId files.name"},
		{"none", `{"op":"in","content":{"fieldName":"path","value":[]}}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := sqon.Parse([]byte(c.filter))
			if err != nil {
				t.Fatal(err)
			}
			found, total, err := w.Find(t.Context(), "key:1", graphql.SetQuery{Members: true, Filter: f, First: 10})
			if err != nil || total != len(found) {
				t.Fatal(total, err)
			}
			got := ""
			for i, s := range found {
				if i > 0 {
					got += " "
				}
				got += s.Path
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	t.Run("a page", func(t *testing.T) {
		found, total, err := w.Find(t.Context(), "key:1", graphql.SetQuery{Members: true, Offset: 1, First: 1})
		if err != nil || total != 3 || len(found) != 1 || found[0].Path != "files.name" {
			t.Error(found, total, err)
		}
		if found, total, err = w.Find(t.Context(), "key:1", graphql.SetQuery{Members: true, Offset: 7, First: 1}); err != nil || total != 3 || len(found) != 0 {
			t.Error(found, total, err)
		}
	})
	t.Run("another's", func(t *testing.T) {
		if found, total, err := w.Find(t.Context(), "key:2", graphql.SetQuery{Members: true, First: 10}); len(found)+total > 0 || err != nil {
			t.Error(found, total, err)
		}
	})
	t.Run("a field that sets do not have", func(t *testing.T) {
		f, err := sqon.Parse([]byte(`{"op":"in","content":{"fieldName":"sizes","value":1}}`))
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = w.Find(t.Context(), "key:1", graphql.SetQuery{Members: true, Filter: f, First: 10})
		wantFault(t, err, core.CodeInvalid, `the filter is not valid at /content/fieldName: unknown field "sizes", did you mean "size"?`)
	})
	t.Run("a store that does not answer", func(t *testing.T) {
		ended, end := context.WithCancel(t.Context())
		end()
		if _, _, err := w.Find(ended, "key:1", graphql.SetQuery{Members: true, First: 10}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
