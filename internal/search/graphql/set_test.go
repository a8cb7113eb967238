package graphql_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/graphql"
	"tutti/internal/search/view"
)

// sets records its calls.
type sets struct {
	saved graphql.SetRequest
	found graphql.SetQuery
	owner string
	err   error
}

var _ graphql.Sets = (*sets)(nil)

func (s *sets) set() graphql.Set {
	return graphql.Set{ID: "s1", CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC), IDs: []string{"a"}, Path: "studyId", Size: 1, Type: "analysis"}
}

func (s *sets) Save(ctx context.Context, view *view.View, r graphql.SetRequest) (graphql.Set, error) {
	if err := ctx.Err(); err != nil {
		return graphql.Set{}, err
	}
	s.saved, s.owner = r, view.Who().ID
	return s.set(), s.err
}

func (s *sets) Find(ctx context.Context, owner string, q graphql.SetQuery) ([]graphql.Set, int, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	s.found, s.owner = q, owner
	return []graphql.Set{s.set()}, 3, s.err
}

func withSets(t *testing.T, s *sets) *world {
	d := plain()
	d.EnableSets = true
	w := &world{T: t, engine: &engine{}, model: model(t, d, mappings)}
	w.service = graphql.New(view.New(w.engine, view.Config{}), graphql.Config{Sets: s})
	return w
}

func TestSaveSet(t *testing.T) {
	s := &sets{}
	w := withSets(t, s)
	me := core.Principal{ID: "key:1"}
	const save = `mutation m($sqon:JSON!){saveSet(type:analysis,sqon:$sqon,path:"files__name",userId:"u",sort:[{fieldName:"count"}]){setId id2:setId createdAt ids size sqon type userId path __typename}}`
	got := w.service.Execute(t.Context(), w.model, me, core.GraphQLRequest{Query: save, Variables: json.RawMessage(`{"sqon":{"op":"in","content":{"fieldName":"studyId","value":["S1"]}}}`)})
	same(t, `{"data":{"saveSet":{"setId":"s1","id2":"s1","createdAt":"2026-01-02","ids":["a"],"size":1,"sqon":null,"type":"analysis","userId":"","path":"studyId","__typename":"Set"}}}`, got.Body)
	want := graphql.SetRequest{
		Type: "analysis", UserID: "u", SQON: json.RawMessage(`{"op":"in","content":{"fieldName":"studyId","value":["S1"]}}`),
		Filter: &query.Node{Op: query.Terms, Field: query.Field{Path: "studyId", Type: "keyword"}, Terms: []string{"S1"}},
		Path:   "files__name", Field: query.Field{Path: "files.name", Type: "keyword", Nested: []string{"files"}},
		Sort: []index.Sort{{Field: query.Field{Path: "count", Type: "long"}}, {Field: query.Field{Path: "_id", Type: "keyword"}}},
	}
	if diff := cmp.Diff(want, s.saved); diff != "" || s.owner != me.ID {
		t.Errorf("owner %q (-want +got):\n%s", s.owner, diff)
	}
	w.refuses(ask(`mutation{saveSet(type:analysis,sqon:{},path:"file"){setId}}`),
		wrong(`the argument path names no field with values, did you mean "files"?`, "BAD_USER_INPUT", at("1", "40", "saveSet")))
	w.refuses(ask(`mutation{saveSet(type:analysis,sqon:{},path:"files"){setId}}`),
		wrong(`the argument path names no field with values`, "BAD_USER_INPUT", at("1", "40", "saveSet")))
	w.refuses(ask(`mutation{saveSet(type:sets,sqon:{},path:"_id"){setId}}`),
		wrong("the argument type must be analysis: a set contains documents, not sets", "BAD_USER_INPUT", at("1", "18", "saveSet")))
	s.err = core.NewError(core.CodeForbidden, "anonymous callers own no sets")
	w.answers(`mutation{saveSet(type:analysis,sqon:{},path:"_id"){setId}}`, `{"data":{"saveSet":null},"errors":[{"message":"anonymous callers own no sets",
		"locations":[{"line":1,"column":10}],"path":["saveSet"],"extensions":{"code":"FORBIDDEN"}}]}`)
	if s.saved.Field.Path != "_id" {
		t.Errorf("saves %+v", s.saved.Field)
	}
}

// TestSaveSetByString: Arranger's components declare the type of the set as a String, where the schema has an enum.
func TestSaveSetByString(t *testing.T) {
	s := &sets{}
	w := withSets(t, s)
	const save = `mutation saveSet($type: String! $userId: String $sqon: JSON! $path: String!, $sort: [Sort]) {
		saveSet(type: $type, userId: $userId, sqon: $sqon, path: $path, sort: $sort) { setId size type }
	}`
	r := core.GraphQLRequest{Query: save, Variables: json.RawMessage(`{"sqon":{},"type":"analysis","path":"studyId","sort":[]}`)}
	same(t, `{"data":{"saveSet":{"setId":"s1","size":1,"type":"analysis"}}}`, w.service.Execute(t.Context(), w.model, core.Principal{ID: "key:1"}, r).Body)
	if s.saved.Type != "analysis" {
		t.Errorf("saved %+v", s.saved)
	}
	r.Variables = json.RawMessage(`{"sqon":{},"type":"donor","path":"studyId"}`)
	w.refuses(r, wrong(`the variable $type is not valid: DocumentType cannot represent "donor"`, "BAD_USER_INPUT", at("1", "18")))
	r.Query = strings.Replace(save, "String!", "String", 1)
	w.refuses(r, wrong(`Variable "$type" of type "String" used in position expecting type "DocumentType!".`, "GRAPHQL_VALIDATION_FAILED", at("2", "17")))
}

func TestSets(t *testing.T) {
	s := &sets{}
	w := withSets(t, s)
	const list = `{sets{hits(first:2,offset:1){total edges{node{id setId size path createdAt}}}}}`
	got := w.service.Execute(t.Context(), w.model, core.Principal{ID: "key:1"}, ask(list))
	same(t, `{"data":{"sets":{"hits":{"total":3,"edges":[{"node":{"id":"s1","setId":"s1","size":1,"path":"studyId","createdAt":"2026-01-02T03:04:05.006Z"}}]}}}}`, got.Body)
	if s.owner != "key:1" || s.found.First != 2 || s.found.Offset != 1 {
		t.Errorf("asked for %+v of %q", s.found, s.owner)
	}
	w.service.Execute(t.Context(), w.model, core.Principal{ID: "key:1"}, ask(
		`{sets{hits(sort:[{fieldName:"size",order:desc},{fieldName:"path",order:asc},{fieldName:"userId",missing:last}]){total}}}`,
	))
	want := []graphql.SetSort{{Field: "size", Descending: true}, {Field: "path", MissingFirst: true}, {Field: "userId"}}
	if diff := cmp.Diff(want, s.found.Sort); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.answers(list, `{"data":{"sets":{"hits":{"total":0,"edges":[]}}}}`)
}

// network always returns the same result.
type network struct {
	asked graphql.NetworkRequest
	err   error
}

var _ graphql.Network = (*network)(nil)

func (n *network) Membership(*catalogue.Model) (bool, map[string]string) {
	return true, map[string]string{"theirs": "Aggregations"}
}

func (n *network) Query(_ context.Context, _ *view.View, r graphql.NetworkRequest) (graphql.NetworkAnswer, error) {
	n.asked = r
	return graphql.NetworkAnswer{
		Nodes:        []graphql.NetworkNode{{ID: "n1", Name: "One", Hits: 3, Status: "CONNECTED"}},
		Aggregations: map[string]json.RawMessage{"theirs": json.RawMessage(`{"bucket_count":1,"buckets":[{"key":"a","doc_count":3}]}`)},
	}, n.err
}

func TestNetwork(t *testing.T) {
	n := &network{}
	w := &world{T: t, engine: &engine{}, model: model(t, plain(), mappings)}
	w.service = graphql.New(view.New(w.engine, view.Config{}), graphql.Config{Network: n})
	const query = `{network(nodesFilter:["n1"]){nodes{nodeId hits x:status} aggregations{t:theirs{bucket_count buckets(max:5){doc_count key}} studyId{bucket_count}}}}`
	w.answers(query, `{"data":{"network":{"nodes":[{"nodeId":"n1","hits":3,"x":"CONNECTED"}],"aggregations":{
		"t":{"bucket_count":1,"buckets":[{"doc_count":3,"key":"a"}]},"studyId":null}}}}`)
	want := []graphql.NetworkField{
		{Name: "theirs", Parts: map[string]map[string]json.RawMessage{"bucket_count": {}, "buckets": {"max": json.RawMessage("5")}}},
		{Name: "studyId", Parts: map[string]map[string]json.RawMessage{"bucket_count": {}}},
	}
	if diff := cmp.Diff(want, n.asked.Fields); diff != "" || !n.asked.Missing || n.asked.Themselves || len(n.asked.Nodes) != 1 {
		t.Errorf("asked for %+v (-want +got):\n%s", n.asked, diff)
	}
	n.err = core.NewError(core.CodeUnavailable, "no node answers")
	w.answers(`{network{nodes{nodeId}}}`, `{"data":{"network":null},"errors":[{"message":"no node answers","locations":[{"line":1,"column":2}],"path":["network"],
		"extensions":{"code":"SERVICE_UNAVAILABLE"}}]}`)
}
