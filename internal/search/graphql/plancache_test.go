package graphql_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/search/catalogue/definition"
	"tutti/internal/search/graphql"
	"tutti/internal/search/view"
)

type askKey struct{}

const pageQuery = `query($f:JSON){analysis{hits(filters:$f){total edges{searchAfter node{id studyId files{hits{total edges{node{name}}}}}}}
	aggregations(filters:$f){studyId{bucket_count buckets{key doc_count}} count{stats{max}}}}}`

// facetKey is the context key of the facet's result.
func facetKey(ctx context.Context, reqs []index.SearchRequest) []index.SearchResult {
	n, _ := ctx.Value(askKey{}).(int)
	results := empty(reqs)
	for i, req := range reqs {
		results[i].Total = int64(n)
		if req.Hits != nil {
			for j := range n % 5 {
				results[i].Hits = append(results[i].Hits, index.Hit{
					ID: fmt.Sprint(n, "-", j), Sort: []json.RawMessage{fmt.Appendf(nil, "%d", j)},
					Source: fmt.Appendf(nil, `{"studyId":"S%d","files":[{"name":"f%d"}]}`, n, j),
				})
			}
		}
		for j, f := range req.Facets {
			if f.Buckets != nil {
				results[i].Facets[j].Buckets = []index.Bucket{{Key: fmt.Sprint("S", n), Count: int64(n)}}
			}
			results[i].Facets[j].Stats = index.Stats{Count: 1, Max: float64(n)}
		}
	}
	return results
}

// wanted is the response to pageQuery.
func wanted(n int) string {
	hits := ""
	for j := range n % 5 {
		if j > 0 {
			hits += ","
		}
		hits += fmt.Sprintf(`{"searchAfter":[%d],"node":{"id":"%d-%d","studyId":"S%d","files":{"hits":{"total":1,"edges":[{"node":{"name":"f%d"}}]}}}}`, j, n, j, n, j)
	}
	return fmt.Sprintf(`{"data":{"analysis":{"hits":{"total":%d,"edges":[%s]},"aggregations":{`+
		`"studyId":{"bucket_count":1,"buckets":[{"key":"S%d","doc_count":%d}]},"count":{"stats":{"max":%d}}}}}}`, n, hits, n, n, n)
}

// TestPlansAreNotShared: concurrent requests of the same operation each get their own results, also if some fail.
func TestPlansAreNotShared(t *testing.T) {
	e := &engine{}
	e.answer = func(ctx context.Context, reqs []index.SearchRequest) ([]index.SearchResult, error) {
		if n, _ := ctx.Value(askKey{}).(int); n%11 == 7 {
			return nil, core.NewError(core.CodeUnavailable, "not now")
		}
		results := facetKey(ctx, reqs)
		read(reqs, results)
		return results, nil
	}
	service := graphql.New(view.New(e, view.Config{}), graphql.Config{})
	m := model(t, plain(), mappings)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := i; n < 400; n += 8 {
				ctx := context.WithValue(t.Context(), askKey{}, n)
				got := service.Execute(ctx, m, core.Principal{}, core.GraphQLRequest{Query: pageQuery, Variables: json.RawMessage(`{"f":null}`)})
				if failed := n%11 == 7; failed != (len(got.Body) != len(wanted(n)) || string(got.Body) != wanted(n)) {
					t.Errorf("%d: %s", n, got.Body)
				}
				got.Release()
			}
		})
	}
	all.Wait()
}

const twoQueries = `query A{analysis{hits{edges{node{id}}}}} query B{analysis{aggregations{studyId{bucket_count}}}}`

// TestPlansAreReused only if everything that they depend on is the same.
func TestPlansAreReused(t *testing.T) {
	identity := "analysisId"
	w := newWorld(t)
	w.engine.answer = func(ctx context.Context, reqs []index.SearchRequest) ([]index.SearchResult, error) {
		return facetKey(ctx, reqs), nil
	}
	w.service = graphql.New(view.New(w.engine, view.Config{Identity: func(string) string { return identity }}), graphql.Config{})
	execute := func(n int, variables string) []index.SearchRequest {
		t.Helper()
		ctx := context.WithValue(t.Context(), askKey{}, n)
		got := w.service.Execute(ctx, w.model, core.Principal{}, core.GraphQLRequest{Query: pageQuery, Variables: json.RawMessage(variables)})
		if string(got.Body) != wanted(n) {
			t.Errorf("%s", got.Body)
		}
		return w.engine.reqs
	}
	const one, other = `{"f":{"op":"in","content":{"fieldName":"studyId","value":["S1"]}}}`, `{"f":{"op":"in","content":{"fieldName":"studyId","value":["S2"]}}}`
	filter := func(reqs []index.SearchRequest) *query.Node { return reqs[0].Filter }
	first := filter(execute(3, one))
	if filter(execute(4, one)) != first {
		t.Error("the same was planned twice")
	}
	if second := filter(execute(2, other)); second == first || second.Terms[0] != "S2" {
		t.Errorf("another filter is %+v", second)
	}
	if filter(execute(1, one)) != first {
		t.Error("the same was planned again after something else")
	}
	identity = "studyId"
	reqs := execute(3, one)
	if last := reqs[0].Hits.Sort; filter(reqs) == first || last[len(last)-1].Field.Path != "studyId" {
		t.Errorf("in another order it is %+v", reqs[0].Hits.Sort)
	}
	w.service.Execute(t.Context(), w.model, core.Principal{}, core.GraphQLRequest{Query: twoQueries, OperationName: "A"})
	w.service.Execute(t.Context(), w.model, core.Principal{}, core.GraphQLRequest{Query: twoQueries, OperationName: "B"})
	if reqs := w.engine.reqs; reqs[0].Hits != nil {
		t.Errorf("the other operation of a document asks %+v", reqs)
	}
	long := `{"f":{"op":"in","content":{"fieldName":"studyId","value":["` + fmt.Sprintf("%017000d", 1) + `"]}}}`
	if kept := filter(execute(3, long)); filter(execute(3, long)) == kept {
		t.Error("a long plan was kept")
	}
	again := execute(3, one)
	for i := range 400 { // far more than are kept
		execute(i%7, fmt.Sprintf(`{"f":{"op":"in","content":{"fieldName":"studyId","value":["T%d"]}}}`, i))
	}
	if filter(execute(3, one)) == filter(again) {
		t.Error("all plans are kept for ever")
	}
}

// memberSets returns other members of a set on each call.
type memberSets struct{ asked int }

func (s *memberSets) Members(context.Context, string, string) ([]string, error) {
	s.asked++
	return []string{fmt.Sprint("a", s.asked)}, nil
}

// TestPlansWithSetsAreNotCached: plans with saved sets are not cached, because they depend on the caller and the time.
func TestPlansWithSetsAreNotCached(t *testing.T) {
	s, kept := &sets{}, &memberSets{}
	w := withSets(t, s)
	w.service = graphql.New(view.New(w.engine, view.Config{Sets: kept}), graphql.Config{Sets: s})
	const named = `{analysis{hits(filters:{op:"in",content:{fieldName:"studyId",value:["set_id:1"]}}){total}}}`
	for n := 1; n <= 3; n++ {
		w.ask(ask(named))
		if got := w.engine.reqs[0].Filter; got == nil || len(got.Terms) != 1 || got.Terms[0] != fmt.Sprint("a", n) {
			t.Errorf("the %d. time the set is %+v", n, got)
		}
	}
	for _, query := range []string{`{sets{hits{total}} analysis{hits{total}}}`, `{sets{hits{total}}}`} {
		for _, owner := range []string{"key:1", "key:2", "key:1"} {
			s.owner = ""
			ctx, end := context.WithCancel(t.Context())
			got := w.service.Execute(ctx, w.model, core.Principal{ID: owner}, ask(query))
			end()
			if s.owner != owner || got.Rejected {
				t.Errorf("%s was asked the sets of %q: %s", owner, s.owner, got.Body)
			}
		}
	}
	for n := 1; n <= 2; n++ {
		s.saved = graphql.SetRequest{}
		ctx, end := context.WithCancel(t.Context())
		got := w.service.Execute(ctx, w.model, core.Principal{ID: "me"}, ask(`mutation{saveSet(type:analysis,sqon:{},path:"studyId",userId:"u"){setId}}`))
		end()
		if s.saved.Path == "" || got.Rejected {
			t.Errorf("the %d. time nothing was saved: %s", n, got.Body)
		}
	}
}

// TestPlansHaveTheCallersAccess: the same operation has the access filter of each caller.
func TestPlansHaveTheCallersAccess(t *testing.T) {
	w := newWorld(t, func(d *definition.Definition) {
		d.Access = &definition.AccessRule{Field: "studyId", Scope: "{value}.READ"}
	})
	for _, scope := range []string{"S1.READ", "S2.READ", "S1.READ"} {
		w.service.Execute(t.Context(), w.model, core.Principal{ID: "x", Scopes: []string{scope}}, ask(`{analysis{hits{total} aggregations{studyId{bucket_count}}}}`))
		for _, req := range w.engine.reqs {
			if req.Filter == nil || len(req.Filter.Terms) != 1 || req.Filter.Terms[0]+".READ" != scope {
				t.Errorf("%s was asked %+v", scope, req.Filter)
			}
		}
	}
	w.service.Execute(t.Context(), w.model, core.Principal{}, ask(`{analysis{hits{total} aggregations{studyId{bucket_count}}}}`))
	for _, req := range w.engine.reqs {
		if req.Filter == nil || req.Filter.Op != query.Nothing {
			t.Errorf("anonymous: %+v", req.Filter)
		}
	}
}

// TestPlansAreReset: a reused plan has no data of earlier executions.
func TestPlansAreReset(t *testing.T) {
	w := newWorld(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	text := strings.Repeat("x", 300<<10)
	var hits []index.Hit
	for i := range 100 {
		hits = append(hits, index.Hit{ID: fmt.Sprint(i), Source: fmt.Appendf(nil, `{"studyId":%q}`, text)})
	}
	w.engine.answer, w.engine.reads = gives(100, hits...), true
	kept := 0
	w.engine.taken = func(int) { kept++ }
	const query = `{analysis{hits(first:100){edges{node{studyId}}}}}`
	for n := 1; n <= 4; n++ { // 30 MB each
		got := w.ask(ask(query))
		if kept != n*len(hits) || len(got.Body) < 30_000_000 {
			t.Errorf("the %d. time %d documents were read, and the answer has %d bytes", n, kept-(n-1)*len(hits), len(got.Body))
		}
		got.Release()
	}
	w.engine.answer = func(_ context.Context, reqs []index.SearchRequest) ([]index.SearchResult, error) {
		results := empty(reqs)
		results[0].Hits = []index.Hit{{ID: "1", Source: fmt.Appendf(nil, `{"studyId":%q}`, strings.Repeat("y", 32<<20))}}
		return results, nil
	}
	w.engine.reads = false
	w.ask(ask(query))
	w.engine.answer, w.engine.reqs = nil, nil
	runtime.GC()
	runtime.GC() // and what the pools had
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(w)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
		t.Errorf("%d MB are kept of an answer", grown>>20)
	}
}

// TestPlansAreBounded by weight: a filter that is repeated in many facets counts for each of them.
func TestPlansAreBounded(t *testing.T) {
	fields := make([]string, 150)
	mapping := `{"properties":{`
	for i := range fields {
		fields[i] = fmt.Sprintf("f%d", i)
		mapping += fmt.Sprintf(`%q:{"type":"keyword"},`, fields[i])
	}
	w := newWorld(t)
	d := plain()
	d.Extended = nil
	w.over(d, strings.TrimSuffix(mapping, ",")+"}}")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	small := core.GraphQLRequest{Query: `{analysis{hits(filters:{op:"in",content:{fieldName:"f1",value:["a"]}}){total}}}`}
	w.ask(small)
	first := w.engine.reqs[0].Filter
	for n := range 20 {
		clauses := ""
		for _, f := range fields {
			clauses += fmt.Sprintf(`,{"op":"in","content":{"fieldName":%q,"value":["v%d"]}}`, f, n)
		}
		query := `query($f:JSON){analysis{aggregations(filters:$f){` + strings.Join(fields, "{bucket_count}") + `{bucket_count}}}}`
		got := w.ask(core.GraphQLRequest{Query: query, Variables: json.RawMessage(`{"f":{"op":"and","content":[` + clauses[1:] + `]}}`)})
		if got.Rejected {
			t.Fatalf("%s", got.Body)
		}
	}
	if w.ask(small); w.engine.reqs[0].Filter != first {
		t.Error("a plan had to make room for larger ones")
	}
	w.engine.reqs = nil
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(w)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("%d MB are kept", grown>>20)
	}
}
