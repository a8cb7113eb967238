package graphql_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/graphql"
	"tutti/internal/search/view"
)

// live is a catalogue over an index with documents.
type live struct {
	*testing.T
	index   *embedded.Index
	service *graphql.Service
	model   *catalogue.Model
	written core.Version
}

func newLive(t *testing.T, cfg view.Config, documents ...string) *live {
	t.Helper()
	x, err := embedded.Open(embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := x.Ensure(t.Context(), index.Spec{Alias: "analyses", Mapping: json.RawMessage(mappings)}); err != nil {
		t.Fatal(err)
	}
	l := &live{T: t, index: x, service: graphql.New(view.New(x, cfg), graphql.Config{}), model: model(t, plain(), mappings)}
	l.write(documents...)
	return l
}

// write writes documents, whose ids are a1, a2 and so on.
func (l *live) write(documents ...string) {
	l.Helper()
	l.written++
	b := core.Batch{Index: "analyses"}
	for i, document := range documents {
		w := core.Write{ID: fmt.Sprint("a", i+1), Version: l.written, Document: []byte(document)}
		item := core.BatchItem{ID: w.ID, Version: w.Version, Start: len(b.Body)}
		b.Body, item.DocStart, item.DocEnd = l.index.Encode(b.Body, w)
		item.End = len(b.Body)
		b.Items = append(b.Items, item)
	}
	results, err := l.index.Write(l.Context(), b)
	if err != nil {
		l.Fatal(err)
	}
	for _, r := range results {
		if r.Outcome != core.OutcomeIndexed {
			l.Fatalf("%+v", r)
		}
	}
}

func (l *live) answers(query, want string) {
	l.Helper()
	got := l.service.Execute(l.Context(), l.model, core.Principal{}, ask(query))
	if got.Rejected {
		l.Fatalf("refused: %s", got.Body)
	}
	same(l, want, got.Body)
}

// TestMissingBucketHasDocuments: the bucket of documents without a value returns the same fields as the others.
func TestMissingBucketHasDocuments(t *testing.T) {
	l := newLive(t, view.Config{},
		`{"analysisId":"a1","studyId":"S1","open":true,"files":[{"name":"f1"}]}`,
		`{"analysisId":"a2","open":true,"files":[{"size":1}]}`,
		`{"analysisId":"a3","open":false,"files":[{"name":"f1"},{"size":2}]}`,
		`{"analysisId":"a4","open":true,"tags":"out"}`,
	)
	const (
		open   = `filter_by_term(filter:{op:in,content:{fieldName:"open",value:true}})`
		facet  = `{key doc_count top_hits(_source:"analysisId",size:2) ` + open + `}`
		within = `filters:{op:"not-in",content:{fieldName:"tags",value:"out"}}`
	)
	l.answers(`{analysis{aggregations{studyId{buckets`+facet+`} files__name{buckets`+facet+`}}}}`, `{"data":{"analysis":{"aggregations":{
		"studyId":{"buckets":[{"key":"S1","doc_count":1,"top_hits":[{"analysisId":"a1"}],"filter_by_term":{"doc_count":1}},
			{"key":"__missing__","doc_count":3,"top_hits":[{"analysisId":"a2"},{"analysisId":"a3"}],"filter_by_term":{"doc_count":2}}]},
		"files__name":{"buckets":[{"key":"f1","doc_count":2,"top_hits":[{"analysisId":"a1"},{"analysisId":"a3"}],"filter_by_term":{"doc_count":1}},
			{"key":"__missing__","doc_count":2,"top_hits":[{"analysisId":"a2"},{"analysisId":"a4"}],"filter_by_term":{"doc_count":2}}]}}}}}`)
	l.answers(`{analysis{aggregations(`+within+`){studyId{buckets{key doc_count top_hits(_source:"analysisId") `+open+`}}}}}`,
		`{"data":{"analysis":{"aggregations":{"studyId":{"buckets":[
			{"key":"S1","doc_count":1,"top_hits":{"analysisId":"a1"},"filter_by_term":{"doc_count":1}},
			{"key":"__missing__","doc_count":2,"top_hits":{"analysisId":"a2"},"filter_by_term":{"doc_count":1}}]}}}}}`)
}

// TestHistogramThatIsTooFine: a histogram with too many intervals is an error only of its own field.
func TestHistogramThatIsTooFine(t *testing.T) {
	l := newLive(t, view.Config{},
		`{"analysisId":"a1","studyId":"S1","count":0,"ratio":0.5,"files":[{"name":"f1","size":1},{"name":"f2","size":90000}]}`,
		`{"analysisId":"a2","studyId":"S1","count":10000,"files":[{"name":"f1","size":2}]}`,
	)
	const fault = `{"message":"a histogram of the field \"%s\" with an interval of 1 would have more than 10000 intervals","locations":[{"line":1,"column":%d}],
		"path":[%s,"histogram"],"extensions":{"code":"BAD_USER_INPUT","hint":"use a larger interval or a more specific filter"}}`
	l.answers(`{analysis{hits{total} aggregations{studyId{buckets{key doc_count}} count{stats{max} histogram(interval:1){buckets{key}}}
		wide:count{histogram(interval:5000){buckets{key doc_count}}} small{histogram{buckets{key}}}}}}`,
		`{"data":{"analysis":{"hits":{"total":2},"aggregations":{"studyId":{"buckets":[{"key":"S1","doc_count":2}]},
			"count":{"stats":{"max":10000},"histogram":null},
			"wide":{"histogram":{"buckets":[{"key":"0","doc_count":1},{"key":"5000","doc_count":0},{"key":"10000","doc_count":1}]}},
			"small":{"histogram":{"buckets":[]}}}}},
			"errors":[`+fmt.Sprintf(fault, "count", 85, `"analysis","aggregations","count"`)+`]}`)
	t.Run("of elements", func(t *testing.T) {
		l := &live{T: t, index: l.index, service: l.service, model: l.model}
		const asked = `{files__size{histogram(interval:1){buckets{key doc_count}}} files__name{bucket_count}}}}`
		l.answers(`{analysis{aggregations`+asked, `{"data":{"analysis":{"aggregations":{"files__size":{"histogram":null},"files__name":{"bucket_count":2}}}},
			"errors":[`+fmt.Sprintf(fault, "files.size", 36, `"analysis","aggregations","files__size"`)+`]}`)
		// The filtered elements have few enough intervals, unlike another field.
		l.answers(strings.Replace(`{analysis{aggregations(filters:{op:in,content:{fieldName:"files.name",value:"f1"}})`+asked, "files__name{", "count{histogram(interval:1){bucket_count}} files__name{", 1),
			`{"data":{"analysis":{"aggregations":{"files__size":{"histogram":{"buckets":[{"key":"1","doc_count":1},{"key":"2","doc_count":1}]}},
			"count":{"histogram":null},"files__name":{"bucket_count":2}}}},
			"errors":[`+fmt.Sprintf(fault, "count", 150, `"analysis","aggregations","count"`)+`]}`)
	})
}

// TestOrderByScore: the sort key that Arranger's tables send for columns of counts has no effect on paging.
func TestOrderByScore(t *testing.T) {
	l := newLive(t, view.Config{}, `{"count":2}`, `{"count":1}`, `{"count":2}`, `{"count":1}`)
	page := func(args string) string {
		return `{analysis{hits(first:2,score:"files.file_id",` + args + `){edges{searchAfter node{id}}}}}`
	}
	l.answers(page(`sort:[{fieldName:"_score",order:desc}]`), `{"data":{"analysis":{"hits":{"edges":[
		{"searchAfter":["a1"],"node":{"id":"a1"}},{"searchAfter":["a2"],"node":{"id":"a2"}}]}}}}`)
	l.answers(page(`sort:[{fieldName:"_score",order:desc}],searchAfter:["a2"]`), `{"data":{"analysis":{"hits":{"edges":[
		{"searchAfter":["a3"],"node":{"id":"a3"}},{"searchAfter":["a4"],"node":{"id":"a4"}}]}}}}`)
	l.answers(page(`sort:[{fieldName:"_score"},{fieldName:"count",order:desc}],searchAfter:[2,"a1"]`), `{"data":{"analysis":{"hits":{"edges":[
		{"searchAfter":[2,"a3"],"node":{"id":"a3"}},{"searchAfter":[1,"a2"],"node":{"id":"a2"}}]}}}}`)
}

// TestFilterByTheID finds documents by their ids, in every operator that compares whole values.
func TestFilterByTheID(t *testing.T) {
	l := newLive(t, view.Config{}, `{"studyId":"S1","files":[{"name":"f"}]}`, `{"studyId":"S1"}`, `{"studyId":"S2"}`)
	for _, c := range []struct{ filter, want string }{
		{`{op:in,content:{fieldName:"_id",value:["a1","a3","none"]}}`, "a1 a3"},
		{`{op:"=",content:{fieldName:"_id",value:"a2"}}`, "a2"},
		{`{op:"not-in",content:{fieldName:"_id",value:["a1"]}}`, "a2 a3"},
		{`{op:"some-not-in",content:{fieldName:"_id",value:["a1"]}}`, "a2 a3"},
		{`{op:all,content:{fieldName:"_id",value:["a1"]}}`, "a1"},
		{`{op:in,content:{fieldName:"_id",value:["__missing__"]}}`, ""},
		{`{op:and,content:[{op:in,content:{fieldName:"_id",value:["a1","a3"]}},{op:in,content:{fieldName:"studyId",value:["S1"]}}]}`, "a1"},
		{`{op:and,pivot:"files",content:[{op:in,content:{fieldName:"files.name",value:["f"]}},{op:in,content:{fieldName:"_id",value:["a1","a2"]}}]}`, "a1"},
		{`{op:or,content:[]}`, "a1 a2 a3"},
		{`{op:and,content:[{op:or,content:[]},{op:in,content:{fieldName:"_id",value:["a2"]}}]}`, "a2"},
	} {
		got := l.service.Execute(t.Context(), l.model, core.Principal{}, ask(`{analysis{hits(sort:{fieldName:"_id"},filters:`+c.filter+`){total edges{node{id}}}}}`))
		var ids []string
		for _, id := range gjson.GetBytes(got.Body, "data.analysis.hits.edges.#.node.id").Array() {
			ids = append(ids, id.Str)
		}
		if strings.Join(ids, " ") != c.want || got.Rejected {
			t.Errorf("%s finds %v, want %s: %s", c.filter, ids, c.want, got.Body)
		}
	}
	l.answers(`{analysis{aggregations(filters:{op:in,content:{fieldName:"_id",value:["a1","a3"]}}){studyId{buckets{key doc_count}}}}}`,
		`{"data":{"analysis":{"aggregations":{"studyId":{"buckets":[{"key":"S1","doc_count":1},{"key":"S2","doc_count":1}]}}}}}`)
}

// TestElements: the arguments of nested hits select elements, but do not change the total.
func TestElements(t *testing.T) {
	l := newLive(t, view.Config{}, `{"files":[{"name":"f1","parts":[{"n":1},{"n":2}]},{"name":"f2"},{"name":"f3"}]}`)
	for _, c := range []struct{ name, args, want string }{
		{"all", ``, "f1 f2 f3"},
		{"the first", `(first:2)`, "f1 f2"},
		{"what follows", `(offset:1)`, "f2 f3"},
		{"one of them", `(first:1,offset:1)`, "f2"},
		{"more than there are", `(first:2147483647,offset:2)`, "f3"},
		{"behind the last", `(first:1,offset:3)`, ""},
		{"none", `(first:0)`, ""},
		{"what means nothing", `(first:null,offset:null)`, "f1 f2 f3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var edges []string
			for name := range strings.FieldsSeq(c.want) {
				edges = append(edges, `{"node":{"name":"`+name+`"}}`)
			}
			l := &live{T: t, service: l.service, model: l.model}
			l.answers(`{analysis{hits{edges{node{files{hits`+c.args+`{total edges{node{name}}}}}}}}}`,
				`{"data":{"analysis":{"hits":{"edges":[{"node":{"files":{"hits":{"total":3,"edges":[`+strings.Join(edges, ",")+`]}}}}]}}}}`)
		})
	}
	l.answers(`{analysis{hits{edges{node{files{hits(first:1){edges{node{parts{a:hits(offset:1){total edges{node{n}}} hits{edges{node{n}}}}}}}}}}}}}`,
		`{"data":{"analysis":{"hits":{"edges":[{"node":{"files":{"hits":{"edges":[{"node":{"parts":{
			"a":{"total":2,"edges":[{"node":{"n":2}}]},"hits":{"edges":[{"node":{"n":1}},{"node":{"n":2}}]}}}}]}}}}]}}}}`)
}
