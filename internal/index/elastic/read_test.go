package elastic_test

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic"
	"tutti/internal/index/mapping"
)

const point = `{"id":"P","_shards":{"failed":0}}`

func TestRefreshIsWhole(t *testing.T) {
	x, _ := play(t, answer{200, `{"_shards":{"failed":1}}`})
	wantError(t, x.Refresh(t.Context(), "a"), core.CodeUnavailable, "not all shards of the index a answered")
}

func TestCheck(t *testing.T) {
	const flood = "the index a accepts no writes: a disk of the index engine is over its flood-stage watermark"
	item := func(status int, kind, reason string) answer {
		return items(`{"index":{"status":` + strconv.Itoa(status) + `,"error":{"type":"` + kind + `","reason":"` + reason + `"}}}`)
	}
	tests := []struct {
		answer  answer
		code    core.Code
		message string
	}{
		{item(400, "index_closed_exception", ""), core.CodeIndexBlocked, "the index a is closed"},
		{item(403, "cluster_block_exception", ""), core.CodeIndexBlocked, "the index a is blocked for writes"},
		{item(429, "cluster_block_exception", ""), core.CodeIndexBlocked, flood},
		{
			item(403, "cluster_block_exception", "index [a] blocked by: [FORBIDDEN/12/index read-only / allow delete (api)];"),
			core.CodeIndexBlocked, flood,
		},
		{
			item(403, "security_exception", "action [indices:data/write/bulk[s]] is unauthorized for user [u] with roles [r] on indices [a], this action is granted by"), core.CodeIndexBlocked,
			"the user of the index lacks a privilege: the engine refuses indices:data/write/bulk[s]",
		},
		{
			item(403, "security_exception", "no permissions for [indices:data/write/bulk[s], indices:data/write/index] and User [name=u]"), core.CodeIndexBlocked,
			"the user of the index lacks a privilege: the engine refuses indices:data/write/bulk[s], indices:data/write/index",
		},
		{
			item(400, "illegal_argument_exception", "no write index is defined for alias [a]"), core.CodeIndexBlocked,
			"the index a has no index to write to",
		},
		{item(503, "unavailable_shards_exception", ""), core.CodeUnavailable, "a shard of the index a does not answer"},
		{refused(401, "security_exception", ""), core.CodeIndexBlocked, "the index rejected the credentials"},
		{refused(503, "cluster_block_exception", "no master"), core.CodeUnavailable, "the index is blocked"},
		{answer{502, ""}, core.CodeUnavailable, "the index returned an unexpected response"},
		{answer{}, core.CodeUnavailable, "the response of the index is incomplete"},
		{items(), core.CodeUnavailable, "the index returned an unexpected response"},
	}
	for _, tt := range tests {
		answers := []answer{tt.answer}
		if strings.Contains(tt.answer.body, "no write index") {
			answers = append(answers, answer{200, `{"a-1":{"settings":{"index":{"uuid":"u1","number_of_shards":"1"}}}}`})
		}
		x, _ := play(t, answers...)
		err := x.Check(t.Context(), "a")
		wantError(t, err, tt.code, tt.message)
		want := map[string]string{
			"the index a is closed": "open it: POST /a/_open",
			"the index a has no index to write to": "add the alias to its index with is_write_index: true (POST /_aliases); an index that is full needs " +
				"another indexName",
		}[tt.message]
		if tt.message == flood {
			want = "free disk space on the engine's nodes or add a node; where the engine does not lift the block by itself " +
				"afterwards, set index.blocks.read_only_allow_delete to null"
		}
		if strings.Contains(tt.message, "lacks a privilege") {
			want = core.HintOf(err) // TestCheckMissing has it
		}
		if e, ok := errors.AsType[*core.Error](err); !ok || e.Hint != want {
			t.Errorf("%s: hint %q, want %q", tt.message, e.Hint, want)
		}
	}
}

// TestCheckMissing: an alias that is missing alone is not an index that is missing: nothing may be made in its place.
func TestCheckMissing(t *testing.T) {
	gone := items(`{"index":{"status":404,"error":{"type":"index_not_found_exception","reason":""}}}`)
	const message, again = "there is no alias a", "it is created again, empty, and the repository is indexed again"
	tests := map[string]struct {
		indices answer
		code    core.Code
		message string
		hint    string
		missing bool
	}{
		"nothing there":    {answer{200, `{}`}, core.CodeIndexBlocked, message, again, true},
		"none of these":    {answer{200, `{"a-b":{},"a-2026":{},"a-b-20260102030405":{}}`}, core.CodeIndexBlocked, message, again, true},
		"its index":        {answer{200, `{"a-b":{},"a-20260102030405":{}}`}, core.CodeIndexBlocked, "the alias a is missing, but an index of it exists", "add the alias a to a-20260102030405, or delete that index to have it created and filled again", false},
		"one being filled": {answer{200, `{"a-20260102030405":{"aliases":{"a--next":{}}}}`}, core.CodeIndexBlocked, message, again, true},
		"one from before":  {answer{200, `{"a-20260102030405":{"aliases":{"a--previous":{}}}}`}, core.CodeIndexBlocked, message, again, true},
		"no answer":        {answer{}, core.CodeUnavailable, "the response of the index is incomplete", "", false},
		"not to be listed": {
			refused(403, "security_exception", "no permissions for [indices:admin/aliases/get] and User [name=u]"), core.CodeIndexBlocked,
			"the user of the index lacks a privilege: the engine refuses indices:admin/aliases/get",
			"grant the user's role the privileges cluster:monitor/main, cluster:monitor/health, cluster:monitor/nodes/info, indices:data/write/bulk, indices:data/read/mget, indices:data/read/msearch on the cluster, and indices_all on each indexName and indexName-*", false,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			x, _ := play(t, gone, tt.indices)
			err := x.Check(t.Context(), "a")
			wantError(t, err, tt.code, tt.message)
			if core.HintOf(err) != tt.hint || errors.Is(err, core.ErrIndexMissing) != tt.missing {
				t.Errorf("hint %q, missing %v", core.HintOf(err), !tt.missing)
			}
		})
	}
}

// TestIndexWithoutItsAlias: the index that an alias stood for is not missing, whatever its name, and the hint names it
// among others. It is not replaced at a start either.
func TestIndexWithoutItsAlias(t *testing.T) {
	gone := items(`{"index":{"status":404,"error":{"type":"index_not_found_exception","reason":""}}}`)
	settings := answer{200, `{"own":{"settings":{"index":{"uuid":"U","number_of_shards":"1"}}}}`}
	noAlias := answer{404, `{"error":"alias [a] missing","status":404}`}
	there := answer{200, `{"a-20260102030405":{},"own":{}}`}
	const message = "the alias a is missing, but an index of it exists"
	x, s := play(t, settings, gone, there, noAlias, there, gone, answer{200, `{}`})
	identity, err := x.Identity(t.Context(), "a")
	if identity != "own/U" || err != nil {
		t.Fatalf("%q, %v", identity, err)
	}
	for _, err := range []error{x.Check(t.Context(), "a"), x.Ensure(t.Context(), index.Spec{Alias: "a"})} {
		wantError(t, err, core.CodeIndexBlocked, message)
		if !strings.HasPrefix(core.HintOf(err), "add the alias a to own,") {
			t.Errorf("hint %q", core.HintOf(err))
		}
	}
	if err := x.Check(t.Context(), "a"); !errors.Is(err, core.ErrIndexMissing) {
		t.Errorf("%v after it was deleted; asked %q", err, s.asked)
	}
	x, _ = play(t, noAlias, there)
	wantError(t, x.Ensure(t.Context(), index.Spec{Alias: "a", Identity: identity}), core.CodeIndexBlocked, message)
}

func TestPing(t *testing.T) {
	x, _ := play(t, answer{200, `{"status":"red"}`}, refused(403, "security_exception", "no privilege"),
		refused(401, "security_exception", ""), answer{503, ""}, answer{})
	for _, code := range []core.Code{"", "", core.CodeIndexBlocked, core.CodeUnavailable, core.CodeUnavailable} {
		if err := x.Ping(t.Context()); core.CodeOf(err) != code {
			t.Errorf("got %v, want %q", err, code)
		}
	}
}

// TestEnsureLosesTheRace: another process makes the alias between looking and making.
func TestEnsureLosesTheRace(t *testing.T) {
	missing := answer{404, `{"error":"alias [a] missing","status":404}`}
	for _, lost := range []answer{
		refused(400, "resource_already_exists_exception", "index [a-1] already exists"),
		refused(500, "illegal_state_exception", "alias [a] has more than one write index [a-1,a-2]"),
	} {
		x, _ := play(t, missing, lost, answer{200, `{"a-1":{"aliases":{"a":{}}}}`}, answer{200, smallTree})
		if err := x.Ensure(t.Context(), index.Spec{Alias: "a"}); err != nil {
			t.Error(err)
		}
	}
	lost := refused(400, "resource_already_exists_exception", "index [a-1] already exists")
	x, s := play(t, missing, lost, missing, lost, missing, lost, missing, lost, missing, lost)
	wantError(t, x.Ensure(t.Context(), index.Spec{Alias: "a"}), core.CodeUnavailable,
		"the alias a could not be created; another process is changing it")
	names := map[string]bool{}
	for _, asked := range s.asked {
		if name, ok := strings.CutPrefix(asked, "PUT /"); ok {
			names[strings.Fields(name)[0]] = true
		}
	}
	if len(names) < 5 {
		t.Errorf("tried only %v", names)
	}
}

// TestEnsureBodies holds what an index is made with; the alias is its write index, of which there can be but one.
func TestEnsureBodies(t *testing.T) {
	head := `PUT /a-20260203040506 {"aliases":{"a":{"is_write_index":true}},"mappings":`
	tests := []struct {
		name string
		spec index.Spec
		want string
	}{
		{
			"tutti's own",
			index.Spec{Alias: "a", Known: &mapping.Field{Type: mapping.Object, Properties: map[string]*mapping.Field{
				"n": {Type: mapping.Long},
			}}},
			head + `{"_meta":{"tutti":{"types":"declared"}},"dynamic":"strict","properties":{"n":{"type":"long"}}},` +
				`"settings":{"index.gc_deletes":"24h","index.number_of_replicas":"1","index.number_of_shards":"3"}}`,
		},
		{"nothing known", index.Spec{Alias: "a"}, head + `{"_meta":{"tutti":{"types":"declared"}},"dynamic":"strict"},` +
			`"settings":{"index.gc_deletes":"24h","index.number_of_replicas":"1","index.number_of_shards":"3"}}`},
		{
			"a mapping",
			index.Spec{Alias: "a", Mapping: []byte(`{"properties":{"x":{"type":"ip"}}}`)},
			head + `{"_meta":{"tutti":{"types":"declared"}},"dynamic":"strict","properties":{"x":{"type":"ip"}}},` +
				`"settings":{"index.gc_deletes":"24h","index.number_of_replicas":"1","index.number_of_shards":"3"}}`,
		},
		{
			"a mapping that does not say what repositories are",
			index.Spec{Alias: "a", Mapping: []byte(`{"dynamic":false,"_meta":{"x":1.0},"properties":{"x":{"type":"ip"}}}`), Known: ownKnown()},
			head + `{"_meta":{"x":1.0,"tutti":{"types":"declared"}},"dynamic":"false","properties":{"repositories":{"properties":{"code":{"type":"keyword"}},"type":"nested"},` +
				`"studyId":{"type":"keyword"},"x":{"type":"ip"}}},` +
				`"settings":{"index.gc_deletes":"24h","index.number_of_replicas":"1","index.number_of_shards":"3"}}`,
		},
		{
			"a mapping without fields",
			index.Spec{Alias: "a", Mapping: []byte(`{"mappings":{}}`), Known: ownKnown()},
			head + `{"_meta":{"tutti":{"types":"declared"}},"dynamic":"strict","properties":{"repositories":{"properties":{"code":{"type":"keyword"}},"type":"nested"},"studyId":{"type":"keyword"}}},` +
				`"settings":{"index.gc_deletes":"24h","index.number_of_replicas":"1","index.number_of_shards":"3"}}`,
		},
		{
			"a mapping that says what they are",
			index.Spec{Alias: "a", Mapping: []byte(`{"properties":{"repositories.code":{"type":"text"}}}`), Known: ownKnown()},
			head + `{"_meta":{"tutti":{"types":"declared"}},"dynamic":"strict","properties":{"repositories":{"properties":{"code":{"type":"text"}},"type":"nested"},"studyId":{"type":"keyword"}}},` +
				`"settings":{"index.gc_deletes":"24h","index.number_of_replicas":"1","index.number_of_shards":"3"}}`,
		},
		{
			"a mapping without objects",
			index.Spec{Alias: "a", Mapping: []byte(`{"subobjects":false}`), Known: ownKnown()},
			head + `{"subobjects":false},"settings":{"index.gc_deletes":"24h","index.number_of_replicas":"1","index.number_of_shards":"3"}}`,
		},
		{
			"a mapping that is not understood here",
			index.Spec{Alias: "a", Mapping: []byte(`{"properties":{"x":{"type":"ip"},"x.y":{"type":"ip"}}}`), Known: ownKnown()},
			head + `{"properties":{"x":{"type":"ip"},"x.y":{"type":"ip"}}},` +
				`"settings":{"index.gc_deletes":"24h","index.number_of_replicas":"1","index.number_of_shards":"3"}}`,
		},
		{
			"a whole body",
			index.Spec{Alias: "a", Mapping: []byte(`{"mappings":{"properties":{}},"settings":{` +
				`"number_of_shards":1,"index":{"gc_deletes":"1h","sort":{"field":["x","y"]}},"index.number_of_replicas":0}}`)},
			head + `{"_meta":{"tutti":{"types":"declared"}},"dynamic":"strict"},"settings":{"index.gc_deletes":"1h","index.number_of_replicas":0,` +
				`"index.number_of_shards":1,"index.sort.field":["x","y"]}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &script{t: t, answers: []answer{{404, `{"error":"alias [a] missing","status":404}`}, {200, done}}}
			x := open(t, serving(t, s.ServeHTTP), func(c *elastic.Config) {
				c.Shards, c.Replicas = 3, 1
				c.Now = func() time.Time { return time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC) }
			})
			if err := x.Ensure(t.Context(), tt.spec); err != nil {
				t.Fatal(err)
			}
			const limits = `"index.mapping.nested_fields.limit":200,"index.mapping.nested_objects.limit":100000,"index.mapping.total_fields.limit":5000,`
			want := strings.Replace(tt.want, `"index.number_of_replicas"`, limits+`"index.number_of_replicas"`, 1)
			if diff := cmp.Diff(want, s.asked[1]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestCompareLimits: of an index that an earlier version of the engine created, and that has defaults of that version, the settings are listed
// that a new one would have.
func TestCompareLimits(t *testing.T) {
	root := strings.Replace(elasticsearch8, "8.19.2", "9.5.3", 1)
	url := listening(t, identified(root, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/a" && r.URL.Query().Get("include_defaults") == "true":
			_, _ = io.WriteString(w, `{"a-20260203040506":{"aliases":{"a":{}},"mappings":{},"settings":{"index.mapping.nested_fields.limit":"200",`+
				`"index.mapping.nested_objects.limit":"100000","index.mapping.total_fields.limit":"5000"},`+
				`"defaults":{"index.mapping.array_objects.limit":"50000","index.mapping.nested_parents.limit":"2147483647"}}}`)
		case r.URL.Path == "/a/_count":
			_, _ = io.WriteString(w, `{"count":1}`)
		default: // may not render mappings
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"error":{"type":"security_exception"},"status":403}`)
		}
	}))
	c, err := open(t, url).Compare(t.Context(), index.Spec{Alias: "a"})
	want := []index.SettingDifference{
		{Setting: mapping.SettingArrayObjects, Wanted: "100000", Live: "50000"}, {Setting: mapping.SettingNestedParents, Wanted: "200", Live: "2147483647"},
	}
	if diff := cmp.Diff(want, c.Limits); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// ownKnown is a small form of what tutti adds to documents, beside a field of a repository.
func ownKnown() *mapping.Field {
	block := &mapping.Field{Type: mapping.Nested, Properties: map[string]*mapping.Field{"code": {Type: mapping.Keyword}}}
	return &mapping.Field{Type: mapping.Object, Properties: map[string]*mapping.Field{"repositories": block, "studyId": {Type: mapping.Keyword}}}
}

// TestEnsureAddsRepositories: an index that a mapping file is given for says in the end what the repositories of documents are, where
// that can still be said.
func TestEnsureAddsRepositories(t *testing.T) {
	spec := index.Spec{Alias: "a", Mapping: []byte(`{"properties":{"x":{"type":"ip"}}}`), Known: ownKnown()}
	there, put := answer{200, `{"a-1":{"aliases":{"a":{}}}}`}, answer{200, done}
	const file = `PUT /a/_mapping {"properties":{"x":{"type":"ip"}}}`
	const added = `PUT /a-1/_mapping {"properties":{"repositories":{"properties":{"code":{"type":"keyword"}},"type":"nested"}}}`
	for _, c := range []struct {
		name    string
		answers []answer
		last    string
	}{
		{"it lacks them", []answer{there, {200, `{"a-1":{"mappings":{}}}`}, put, put}, added},
		{
			"a document was faster",
			[]answer{there, {200, `{"a-1":{"mappings":{}}}`}, put, refused(400, "illegal_argument_exception", "can't merge a non-nested mapping")},
			added,
		},
		{"it has them", []answer{there, {200, `{"a-1":{"mappings":{"properties":{"repositories":{"type":"flattened"}}}}}`}, put}, file},
		{
			"it is not understood here",
			[]answer{there, {200, `{"a-1":{"mappings":{"properties":{"x":{"type":"ip"},"x.y":{"type":"ip"}}}}}`}, put},
			file,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, s := play(t, c.answers...)
			if err := x.Ensure(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			if got := s.asked[len(s.asked)-1]; strings.TrimSpace(got) != strings.TrimSpace(c.last) {
				t.Errorf("asked %s last, want %s", got, c.last)
			}
		})
	}
	x, _ := play(t, there, answer{503, ""})
	wantError(t, x.Ensure(t.Context(), spec), core.CodeOverloaded, "the index is overloaded")
}

func TestEnsureRefuses(t *testing.T) {
	missing := answer{404, `{"error":"alias [a] missing","status":404}`}
	tests := []struct {
		name    string
		answers []answer
		code    core.Code
		message string
	}{
		{"a proxy's 404", []answer{{404, "<html>"}}, core.CodeUnavailable, "the index returned an unexpected response"},
		{
			"several indices",
			[]answer{{200, `{"a-1":{"aliases":{"a":{}}},"a-2":{"aliases":{"a":{}}}}`}},
			core.CodeConflict,
			"the alias a has more than one index: a-1, a-2",
		},
		{
			"an index of that name",
			[]answer{missing, refused(400, "invalid_alias_name_exception",
				"Invalid alias name [a]: an index or data stream exists with the same name as the alias"), plain("", "null")},
			core.CodeConflict, "an index has the name a, which tutti needs for an alias",
		},
		{
			"an index of that name that an interrupted Adopt left without writes",
			[]answer{missing, refused(400, "invalid_alias_name_exception",
				"Invalid alias name [a]: an index or data stream exists with the same name as the alias"), plain(`"a--adopting":{}`, `"true"`)},
			core.CodeConflict, "tutti mapping adopt has not ended for the index a, which takes no writes until it does: repeat the command if it is not running",
		},
		{
			"an impossible name",
			[]answer{missing, refused(400, "invalid_alias_name_exception", "must not contain")},
			core.CodeInvalid, "the index rejected the request",
		},
		{
			"no credentials",
			[]answer{refused(401, "security_exception", "")},
			core.CodeIndexBlocked,
			"the index rejected the credentials",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x, _ := play(t, tt.answers...)
			wantError(t, x.Ensure(t.Context(), index.Spec{Alias: "a"}), tt.code, tt.message)
		})
	}
}

// TestEnsureRefusesWhatWasRead: an index with the name of the alias is not taken for one that has lost it because its mapping was read.
func TestEnsureRefusesWhatWasRead(t *testing.T) {
	x, _ := play(t, answer{200, `{"a":{"mappings":{}}}`}, answer{404, `{"error":"alias [a] missing","status":404}`},
		refused(400, "invalid_alias_name_exception", "Invalid alias name [a]: an index or data stream exists with the same name as the alias"), plain("", "null"))
	if _, err := x.Mapping(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	wantError(t, x.Ensure(t.Context(), index.Spec{Alias: "a"}), core.CodeConflict, "an index has the name a, which tutti needs for an alias")
}

// TestAdviceOfContradictions: where the mapping file contradicts the index, the one that a rebuild fills is created with the mapping file, as the
// hint says.
func TestAdviceOfContradictions(t *testing.T) {
	next, file := core.NextAlias("a"), `{"properties":{"n":{"type":"keyword"}}}`
	was, created := answer{200, `{"a-1":{"mappings":{"properties":{"n":{"type":"long"}}}}}`}, answer{200, `{"a-2":{"aliases":{"` + next + `":{}}}}`}
	x, s := play(t, answer{200, `{"a-1":{"aliases":{"a":{}}}}`}, was, refused(400, "illegal_argument_exception", "cannot be changed"), was, answer{200, `{"template":{"mappings":` + file + `}}`},
		refused(404, "index_not_found_exception", "no such index"), answer{404, `{"error":"alias [` + next + `] missing","status":404}`}, answer{200, done}, created, created)
	err := x.Ensure(t.Context(), index.Spec{Alias: "a", Mapping: []byte(file)})
	wantError(t, err, core.CodeConflict, `the mapping file contradicts the mapping of a: the field "n" is long in the index and keyword in the mapping`)
	wantHint(t, err, "rebuild the repository's index, which creates a new one with the mapping file")
	s.asked = nil
	if err := x.Ensure(t.Context(), index.Spec{Alias: next, Replaces: "a", Mapping: []byte(file)}); err != nil || !strings.Contains(s.asked[2], `"n":{"type":"keyword"}`) {
		t.Errorf("%v; asked %q", err, s.asked)
	}
}

// TestAdviceOfTakenNames: where an index has the name of the alias, also one that an interrupted Adopt left without writes, another name is
// created, and Adopt makes the index an alias, as the hints say.
func TestAdviceOfTakenNames(t *testing.T) {
	missing := func(alias string) answer {
		return answer{404, `{"error":"alias [` + alias + `] missing","status":404}`}
	}
	taken := refused(400, "invalid_alias_name_exception", "Invalid alias name [a]: an index or data stream exists with the same name as the alias")
	const adopted = `{"a-19700101000000":{"aliases":{"a":{}}}}`
	for hint, found := range map[string]answer{
		"choose another name, or make it an alias of the same documents: tutti mapping adopt": plain("", "null"),
		"tutti mapping adopt completes what was interrupted, or restores the writes":          plain(`"a--adopting":{}`, `"true"`),
	} {
		ok, counted := answer{200, done}, answer{200, `{"count":7}`}
		answers := []answer{missing("a"), taken, found, missing("b"), ok, found, refused(404, "index_not_found_exception", "no such index")}
		if !strings.Contains(found.body, "--adopting") {
			answers = append(answers, ok) // the mark
		}
		answers = append(answers, ok, ok, answer{200, `{"timed_out":false}`}, ok, counted, ok, counted, found, ok, answer{200, adopted}, answer{200, `{"a-19700101000000":{"mappings":{}}}`})
		x, _ := play(t, answers...)
		wantHint(t, x.Ensure(t.Context(), index.Spec{Alias: "a"}), hint)
		if err := x.Ensure(t.Context(), index.Spec{Alias: "b"}); err != nil {
			t.Errorf("another name: %v", err)
		}
		if physical, _, err := x.Adopt(t.Context(), "a"); err != nil || physical != "a-19700101000000" {
			t.Errorf("Adopt: %s, %v", physical, err)
		}
		if err := x.Ensure(t.Context(), index.Spec{Alias: "a"}); err != nil {
			t.Errorf("after Adopt: %v", err)
		}
	}
}

// TestCompareAsks: the cluster's refusal names the whole path; without the privilege only the creation tells.
func TestCompareAsks(t *testing.T) {
	absent := refused(404, "index_not_found_exception", "no such index [a]")
	spec := index.Spec{Alias: "a", Mapping: []byte(`{"settings":{"number_of_shards":7},"mappings":{"properties":{"age":{"type":"long"},"b":{"properties":{"age":{"type":"lonng"}}}}}}`)}
	x, s := play(t, absent, answer{400, `{"error":{"type":"illegal_argument_exception","reason":"composable template [simulate_template_x] template after composition is invalid",
		"caused_by":{"type":"illegal_argument_exception","reason":"invalid composite mappings for [simulate_template_x]",
		"caused_by":{"type":"mapper_parsing_exception","reason":"Failed to parse mapping: No handler for type [lonng] declared on field [age]",
		"caused_by":{"type":"mapper_parsing_exception","reason":"No handler for type [lonng] declared on field [age]"}}}},"status":400}`})
	c, err := x.Compare(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, c.Refused, core.CodeInvalid, `the search engine refuses the mapping file: the field "b.age": No handler for type [lonng] declared on field [age]`)
	if got := s.asked[1]; !strings.Contains(got, `"index.number_of_shards":7`) || !strings.Contains(got, `"index_patterns":["tutti-mapping-plan"]`) {
		t.Errorf("asked %s", got)
	}
	for name, reply := range map[string]answer{
		"no privilege": refused(403, "security_exception", "action [indices:admin/index_template/simulate] is unauthorized"),
		"no such path": refused(405, "", "Incorrect HTTP method"),
		"taken":        refused(400, "illegal_argument_exception", "index template [x] has index patterns [tutti-mapping-plan] that have the same priority [1]"),
	} {
		x, _ := play(t, absent, reply)
		if c, err := x.Compare(t.Context(), spec); err != nil || !c.Unasked || c.Refused != nil {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}
