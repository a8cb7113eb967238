package elastic_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/document"
	"tutti/internal/index/elastic"
)

// script is a cluster that returns its responses in order and records the requests.
type script struct {
	t *testing.T

	mu      sync.Mutex
	answers []answer
	asked   []string
	// settings, if set, are answered whenever the settings of an index are read, in addition to answers.
	settings string
}

type answer struct {
	status int // 0 cuts the answer
	body   string
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	if s.settings != "" && strings.Contains(r.URL.Path, "/_settings") {
		_, _ = io.WriteString(w, s.settings)
		return
	}
	s.asked = append(s.asked, r.Method+" "+r.URL.Path+" "+string(body))
	if len(s.answers) == 0 {
		s.t.Errorf("nobody expected %s", s.asked[len(s.asked)-1])
		return
	}
	next := s.answers[0]
	s.answers = s.answers[1:]
	if next.status == 0 {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			s.t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
		_ = conn.Close()
		return
	}
	w.WriteHeader(next.status)
	_, _ = io.WriteString(w, next.body)
}

// play opens an engine on a cluster that answers as told, and checks that all of it was asked for.
func play(t *testing.T, answers ...answer) (*elastic.Index, *script) {
	t.Helper()
	s := &script{t: t, answers: answers}
	x := open(t, serving(t, s.ServeHTTP))
	t.Cleanup(func() {
		if len(s.answers) > 0 {
			t.Errorf("%d answers were not asked for; asked: %q", len(s.answers), s.asked)
		}
	})
	return x, s
}

const (
	strictItem  = `{"index":{"status":400,"error":{"type":"strict_dynamic_mapping_exception","reason":"dynamic introduction"}}}`
	indexedItem = `{"index":{"status":201}}`
	smallTree   = `{"a-1":{"mappings":{"dynamic":"strict","properties":{"studyId":{"type":"keyword"}}}}}`
	done        = `{"acknowledged":true}`
)

func items(list ...string) answer {
	errors := strings.Contains(strings.Join(list, ""), "error")
	return answer{200, fmt.Sprintf(`{"errors":%t,"items":[%s]}`, errors, strings.Join(list, ","))}
}

func refused(status int, kind, reason string) answer {
	return answer{status, fmt.Sprintf(`{"error":{"type":%q,"reason":%q},"status":%d}`, kind, reason, status)}
}

// TestGrow sends only the documents again that met an unknown path, and keeps the order of the results.
func TestGrow(t *testing.T) {
	x, s := play(t,
		items(indexedItem, strictItem, `{"delete":{"status":404}}`, strictItem),
		answer{200, smallTree}, answer{200, done},
		items(indexedItem, `{"index":{"status":400,"error":{"type":"document_parsing_exception","reason":"no"}}}`))
	b := batch(x, "a", put("1", 1, `{"studyId":"S"}`), put("2", 2, `{"u":[{"v":1.5}],"w":[]}`), remove("3", 3),
		put("4", 4, `{"u":{"v":null}}`))
	results, err := x.Write(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	want := []core.Result{
		{Outcome: core.OutcomeIndexed},
		{Outcome: core.OutcomeIndexed},
		{Outcome: core.OutcomeRemoved},
		{Outcome: core.OutcomeRejected, Type: "document_parsing_exception", Reason: "no"},
	}
	if diff := cmp.Diff(want, results); diff != "" {
		t.Error(diff)
	}
	asked := []string{
		"POST /a/_bulk " + string(b.Payload()),
		"GET /a/_mapping ",
		`PUT /a-1/_mapping {"properties":{"u":{"properties":{"v":{"type":"double"}},"type":"nested"}}}`,
		"POST /a/_bulk " + `{"index":{"_id":"2","version":2,"version_type":"external_gte"}}` + "\n" + `{"u":[{"v":1.5}]}` + "\n" +
			`{"index":{"_id":"4","version":4,"version_type":"external_gte"}}` + "\n" + `{"u":{"v":null}}` + "\n",
	}
	if diff := cmp.Diff(asked, s.asked); diff != "" {
		t.Error(diff)
	}
}

// TestGrownIsTold: whoever looks at the mapping hears when it has grown, and not when it could not.
func TestGrownIsTold(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer answer
		want   []string
	}{
		{"it has grown", answer{200, done}, []string{"a"}},
		{"it has not", answer{503, `{}`}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &script{t: t, answers: []answer{items(strictItem), {200, smallTree}, c.answer, items(indexedItem)}}
			var told []string
			x, err := elastic.New(elastic.Config{
				Connection: elastic.Connection{URLs: []string{serving(t, s.ServeHTTP)}}, Grown: func(alias string) { told = append(told, alias) },
			})
			if err != nil {
				t.Fatal(err)
			}
			defer x.Close()
			if _, err := x.Write(t.Context(), batch(x, "a", put("1", 1, `{"u":1}`))); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, told); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestGrowFails holds that a document is rejected only when it can never be written, and that the others keep their
// results.
func TestGrowFails(t *testing.T) {
	first := items(indexedItem, strictItem)
	retry := func(code core.Code, kind string) core.Result {
		return core.Result{Outcome: core.OutcomeRetry, Code: code, Type: kind}
	}
	limit := refused(400, "illegal_argument_exception", "Limit of total fields [1000] has been exceeded")
	depth := refused(400, "mapper_parsing_exception", "Failed to parse mapping: Limit of mapping depth [20] has been exceeded")
	tests := []struct {
		name    string
		answers []answer
		want    core.Result
	}{
		{"the mapping cannot be read", []answer{first, {}}, retry(core.CodeUnavailable, "")},
		{
			"the index is gone",
			[]answer{first, refused(404, "index_not_found_exception", "")},
			retry(core.CodeIndexBlocked, "index_not_found_exception"),
		},
		{
			"the mapping is blocked",
			[]answer{first, {200, smallTree}, refused(403, "cluster_block_exception", "")},
			retry(core.CodeIndexBlocked, "cluster_block_exception"),
		},
		{
			"a full disk",
			[]answer{first, {200, smallTree}, refused(429, "cluster_block_exception", "")},
			retry(core.CodeIndexBlocked, "cluster_block_exception"),
		},
		{"no answer to the mapping", []answer{first, {200, smallTree}, {}}, retry(core.CodeUnavailable, "")},
		{
			"no answer to the second request",
			[]answer{first, {200, smallTree}, {200, done}, {}},
			retry(core.CodeUnavailable, ""),
		},
		{
			"a short answer to the second request",
			[]answer{first, {200, smallTree}, {200, done}, items()},
			retry(core.CodeUnavailable, ""),
		},
		{
			"the second request is too large",
			[]answer{first, {200, smallTree}, {200, done}, {413, ""}},
			retry(core.CodeUnavailable, ""),
		},
		{"too many fields", []answer{first, {200, smallTree}, limit, {200, smallTree}, limit}, core.Result{
			Outcome: core.OutcomeRejected,
			Type:    "illegal_argument_exception", Reason: "Limit of total fields [1000] has been exceeded",
			Hint: document.RejectionHint("Limit of total fields [1000] has been exceeded"),
		}},
		{"too deep, as Elasticsearch 8 answers", []answer{first, {200, smallTree}, depth, {200, smallTree}, depth}, core.Result{
			Outcome: core.OutcomeRejected,
			Type:    "mapper_parsing_exception", Reason: "Failed to parse mapping: Limit of mapping depth [20] has been exceeded",
			Hint: document.RejectionHint("Limit of mapping depth [20]"),
		}},
		{"the mapping does not explain it", []answer{
			first,
			{200, smallTree},
			{200, done},
			items(strictItem),
			{200, smallTree},
			{200, done},
			items(strictItem),
			{200, smallTree},
			{200, done},
			items(strictItem),
		}, core.Result{Outcome: core.OutcomeRejected, Type: "strict_dynamic_mapping_exception", Reason: "dynamic introduction"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x, _ := play(t, tt.answers...)
			results, err := x.Write(t.Context(), batch(x, "a", put("1", 1, `{}`), put("2", 1, `{"u":1}`)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]core.Result{{Outcome: core.OutcomeIndexed}, tt.want}, results); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestGrowAfterAnotherProcess: what is remembered of the mapping is only a guess, for growing and for rejecting, and what was just read may have
// changed again when the fields are added.
func TestGrowAfterAnotherProcess(t *testing.T) {
	grown := strings.Replace(smallTree, `"studyId"`, `"u":{"type":"keyword"},"studyId"`, 1)
	conflict := refused(400, "illegal_argument_exception", "mapper [u] cannot be changed from type [keyword] to [long]")
	x, s := play(t,
		items(strictItem), answer{200, smallTree}, answer{200, done}, items(indexedItem), // learns the mapping
		items(strictItem), answer{200, grown}, items(indexedItem), // another process made u a keyword
		items(strictItem), answer{200, smallTree}, answer{200, done}, items(indexedItem), // the alias changed over
		items(strictItem), answer{200, smallTree}, conflict, answer{200, grown}, items(indexedItem), // u was made between reading and adding
	)
	for _, doc := range []string{`{"s":1}`, `{"u":1}`, `{"u":{"v":1}}`, `{"u":1}`} {
		results, err := x.Write(t.Context(), batch(x, "a", put("1", 1, doc)))
		if err != nil || results[0].Outcome != core.OutcomeIndexed {
			t.Errorf("%s: got %+v, %v", doc, results, err)
		}
	}
	if got := s.asked[9]; got != `PUT /a-1/_mapping {"properties":{"u":{"properties":{"v":{"type":"long"}}}}}` {
		t.Errorf("asked %s", got)
	}
}

// TestGrowAfterRebuilds: an alias whose index another process has replaced gets fields by what was decided for the index that it has now, and the
// index that was read gets them, whatever the alias has when it does; of an index without a name of tutti's, which a role may not know, the alias.
func TestGrowAfterRebuilds(t *testing.T) {
	decided := func(index, kind string) answer {
		return answer{200, fmt.Sprintf(`{%q:{"mappings":{"_meta":{"tutti":{"kinds":{"u":%q,"v":%[2]q}}},"dynamic":"strict"}}}`, index, kind)}
	}
	const long, keyword = `{"type":"long"}`, `{"ignore_above":8191,"type":"keyword"}`
	missing := answer{404, `{"error":{"type":"aliases_not_found_exception"},"status":404}`}
	for _, tt := range []struct {
		name    string
		ensure  bool // fields are added before the documents are sent
		answers []answer
		want    []string
	}{
		{
			"before sending", true,
			[]answer{
				missing,
				{200, done},
				decided("a-1", "long"),
				{200, done},
				items(indexedItem),
				decided("a-2", "keyword"),
				{200, done},
				items(indexedItem),
			},
			[]string{"PUT /a-1/_mapping " + `{"properties":{"u":` + long + `}}`, "PUT /a-2/_mapping " + `{"properties":{"v":` + keyword + `}}`},
		},
		{
			"after a rejection", false,
			[]answer{
				items(strictItem), decided("a-1", "long"),
				{200, done},
				items(indexedItem),
				items(strictItem), decided("a-2", "keyword"),
				{200, done},
				items(indexedItem),
			},
			[]string{"PUT /a-1/_mapping " + `{"properties":{"u":` + long + `}}`, "PUT /a-2/_mapping " + `{"properties":{"v":` + keyword + `}}`},
		},
		{
			"names of others", false,
			[]answer{
				items(strictItem), decided("old", "long"),
				{200, done},
				items(indexedItem),
				items(strictItem), decided("ab-1", "keyword"),
				{200, done},
				items(indexedItem),
			},
			[]string{"PUT /a--next/_mapping " + `{"properties":{"u":` + long + `}}`, "PUT /a--next/_mapping " + `{"properties":{"v":` + keyword + `}}`},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x, s := play(t, tt.answers...)
			alias := core.NextAlias("a")
			if tt.ensure {
				if err := x.Ensure(t.Context(), index.Spec{Alias: alias}); err != nil {
					t.Fatal(err)
				}
			}
			for _, doc := range []string{`{"u":1}`, `{"v":1}`} {
				results, err := x.Write(t.Context(), batch(x, alias, put("1", 1, doc)))
				if err != nil || results[0].Outcome != core.OutcomeIndexed {
					t.Errorf("%s: got %+v, %v", doc, results, err)
				}
			}
			var added []string
			for _, asked := range s.asked {
				if strings.Contains(asked, "/_mapping {") {
					added = append(added, asked)
				}
			}
			if diff := cmp.Diff(tt.want, added); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestExactAfterRebuild: what was remembered of an index says nothing about the numbers that the next one takes, once that has been seen.
func TestExactAfterRebuild(t *testing.T) {
	tree := func(index, field string) answer {
		return answer{200, fmt.Sprintf(`{%q:{"mappings":{"dynamic":"strict","properties":{"n":%s}}}}`, index, field)}
	}
	const long, double = `{"type":"long"}`, `{"type":"double","meta":{"tutti_kind":"number"}}`
	x, _ := play(t,
		tree("a-1", long), items(strictItem), tree("a-1", long), answer{200, done}, items(indexedItem), // n is remembered as a long from here on
		items(indexedItem),
		tree("a-2", double), // the alias has another index
		tree("a-2", double))
	for _, want := range []struct {
		doc     string
		outcome core.Outcome
	}{
		{`{"n":9007199254740993,"u":1}`, core.OutcomeIndexed},
		{`{"n":9007199254740993}`, core.OutcomeIndexed},
		{`{"n":9007199254740993}`, core.OutcomeRejected},
	} {
		if want.outcome == core.OutcomeRejected {
			if _, err := x.Mapping(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		}
		results, err := x.Write(t.Context(), batch(x, "a", put("1", 1, want.doc)))
		if err != nil || results[0].Outcome != want.outcome {
			t.Errorf("%s: got %+v, %v", want.doc, results, err)
		}
	}
}

// TestOneBadNameIsItsOwnFault: when the cluster refuses the fields of all, each document stands for its own.
func TestOneBadNameIsItsOwnFault(t *testing.T) {
	no := refused(400, "illegal_argument_exception", "no")
	x, _ := play(t,
		items(strictItem, strictItem, strictItem), answer{200, smallTree}, no, answer{200, smallTree},
		answer{200, done}, no, answer{200, done}, items(indexedItem, indexedItem))
	results, err := x.Write(t.Context(), batch(x, "a", put("1", 1, `{"u":1}`), put("2", 1, `{"v":1}`), put("3", 1, `{"w":1}`)))
	if err != nil {
		t.Fatal(err)
	}
	want := []core.Result{
		{Outcome: core.OutcomeIndexed},
		{Outcome: core.OutcomeRejected, Type: "illegal_argument_exception", Reason: "no"},
		{Outcome: core.OutcomeIndexed},
	}
	if diff := cmp.Diff(want, results); diff != "" {
		t.Error(diff)
	}
}

// TestLaterWritesStay: a write that has to be sent again must not overtake a later one of the same document, which the
// cluster would let it do when their versions are equal.
func TestLaterWritesStay(t *testing.T) {
	x, _ := play(t,
		items(strictItem, indexedItem, strictItem, `{"delete":{"status":200}}`, indexedItem, strictItem),
		answer{200, smallTree}, answer{200, done}, items(indexedItem))
	results, err := x.Write(t.Context(), batch(x, "a", put("1", 5, `{"u":1}`), put("1", 5, `{}`),
		put("2", 5, `{"u":1}`), remove("2", 6), put("3", 5, `{}`), put("3", 5, `{"u":1}`)))
	if err != nil {
		t.Fatal(err)
	}
	want := []core.Result{
		{Outcome: core.OutcomeStale, CurrentVersion: 5},
		{Outcome: core.OutcomeIndexed},
		{Outcome: core.OutcomeStale, CurrentVersion: 6},
		{Outcome: core.OutcomeRemoved},
		{Outcome: core.OutcomeIndexed},
		{Outcome: core.OutcomeIndexed},
	}
	if diff := cmp.Diff(want, results); diff != "" {
		t.Error(diff)
	}
}

// TestEmptiesAreTrimmedEarly: where many documents need it, they are not sent twice; where no longer, not read.
func TestEmptiesAreTrimmedEarly(t *testing.T) {
	x, s := play(t,
		items(strictItem, indexedItem), answer{200, smallTree}, items(indexedItem), // learns that it is worth it
		items(indexedItem, indexedItem), // trimmed before
		items(indexedItem, indexedItem), // nothing to trim: goes as it is, and so does the next
		items(strictItem, indexedItem), items(indexedItem))
	trimmed := batch(x, "a", put("1", 1, `{}`), put("2", 1, `{}`))
	empty := batch(x, "a", put("1", 1, `{"u":[]}`), put("2", 1, `{}`))
	for i, b := range []core.Batch{empty, empty, trimmed, empty} {
		before := string(b.Body)
		results, err := x.Write(t.Context(), b)
		if err != nil || len(results) != 2 || results[0].Outcome != core.OutcomeIndexed || results[1].Outcome != core.OutcomeIndexed {
			t.Errorf("batch %d: got %+v, %v", i, results, err)
		}
		if string(b.Body) != before {
			t.Errorf("batch %d was changed", i)
		}
	}
	asked := []string{
		"POST /a/_bulk " + string(empty.Body), "GET /a/_mapping ", "POST /a/_bulk " + string(trimmed.Slice(0, 1).Payload()),
		"POST /a/_bulk " + string(trimmed.Body), "POST /a/_bulk " + string(trimmed.Body),
		"POST /a/_bulk " + string(empty.Body), "POST /a/_bulk " + string(trimmed.Slice(0, 1).Payload()),
	}
	if diff := cmp.Diff(asked, s.asked); diff != "" {
		t.Error(diff)
	}
}

// TestGrowOnAnotherIndex: the alias stands for a new index, which lacks more than what the remembered mapping lacks.
func TestGrowOnAnotherIndex(t *testing.T) {
	x, _ := play(t,
		items(strictItem), answer{200, smallTree}, answer{200, done}, items(indexedItem), // v is known from here on
		items(strictItem, indexedItem, indexedItem), items(strictItem), // only u is trimmed
		answer{200, smallTree}, answer{200, done}, items(indexedItem))
	for _, b := range []core.Batch{
		batch(x, "a", put("1", 1, `{"v":1}`)),
		batch(x, "a", put("1", 2, `{"v":1,"u":[]}`), put("2", 1, `{}`), put("3", 1, `{}`)),
	} {
		results, err := x.Write(t.Context(), b)
		if err != nil || results[0].Outcome != core.OutcomeIndexed {
			t.Errorf("got %+v, %v", results, err)
		}
	}
}

// TestOldDocumentsAreNotSent: adding fields may take as long as a request may. What is older than it may be by then is not
// sent, neither for the first time nor again.
func TestOldDocumentsAreNotSent(t *testing.T) {
	start := time.Now()
	late := core.Result{Outcome: core.OutcomeRetry, Code: core.CodeOverloaded}
	tests := []struct {
		name    string
		after   time.Duration // when extended the mapping
		prepare bool          // the fields are added before the documents are sent
		want    []core.Result
		err     core.Code
		sent    int
	}{
		{"sent again in time", 9 * time.Second, false, []core.Result{{Outcome: core.OutcomeIndexed}, {Outcome: core.OutcomeIndexed}}, "", 2},
		{"sent again too late", 10 * time.Second, false, []core.Result{{Outcome: core.OutcomeIndexed}, late}, "", 1},
		{"sent in time", 9 * time.Second, true, []core.Result{{Outcome: core.OutcomeIndexed}, {Outcome: core.OutcomeIndexed}}, "", 1},
		{"sent too late", 10 * time.Second, true, nil, core.CodeOverloaded, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var sent int
			now := start
			x := open(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/_bulk"):
					sent++
					next := items(indexedItem, indexedItem)
					if !tt.prepare {
						next = []answer{items(indexedItem, strictItem), items(indexedItem)}[sent-1]
					}
					_, _ = io.WriteString(w, next.body)
				case r.Method == http.MethodPut:
					now = start.Add(tt.after)
					_, _ = io.WriteString(w, done)
				default:
					_, _ = io.WriteString(w, smallTree)
				}
			}), func(c *elastic.Config) { c.Now = func() time.Time { return now } })
			if tt.prepare {
				if err := x.Ensure(t.Context(), index.Spec{Alias: "a"}); err != nil {
					t.Fatal(err)
				}
				now = start
			}
			b := batch(x, "a", put("1", 1, `{"studyId":"S"}`), put("2", 2, `{"u":1}`))
			b.Deadline = start.Add(10 * time.Second)
			results, err := x.Write(t.Context(), b)
			if diff := cmp.Diff(tt.want, results); diff != "" || core.CodeOf(err) != tt.err {
				t.Errorf("%v %s", err, diff)
			}
			if sent != tt.sent {
				t.Errorf("sent %d times, want %d", sent, tt.sent)
			}
		})
	}
}
