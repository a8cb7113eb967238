package app_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// otherCode is the code of the second repository of a sharingSongs.
const otherCode = "song.other"

// sharingSongs is a world with two Songs that share one index.
type sharingSongs struct {
	*world
	other *testkit.SongServer
}

// startSharing starts a tutti with two Songs that share one index. repository is more of the YAML of both.
func startSharing(t *testing.T, repository string) *sharingSongs {
	t.Helper()
	return startSharingOf(t, settings{repository: repository})
}

// startSharingOf is startSharing with settings, whose repository counts for both Songs.
func startSharingOf(t *testing.T, set settings) *sharingSongs {
	t.Helper()
	other, err := testkit.NewSong(testkit.SongConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	w, repository := newWorld(t, set), set.repository
	w.set.more = fmt.Sprintf("  - code: %s\n    type: song\n    url: %q\n    indexName: %s\n    name: Other\n%s", otherCode, other.URL(), w.alias, indent(repository))
	w.start()
	w.eventually(wait, func() (bool, string) {
		a := w.ready()
		return a.status == http.StatusOK && len(a.get("paused").Array()) == 0, string(a.raw)
	})
	return &sharingSongs{w, other}
}

// has puts an analysis into both Songs (0, 1), or one of them.
func (p *sharingSongs) has(id, updated, sex string, songs ...int) {
	p.t.Helper()
	for _, n := range songs {
		song := []*testkit.SongServer{p.song, p.other}[n]
		body := fmt.Appendf(nil, `{"analysisId":%q,"studyId":"S1","analysisState":"PUBLISHED","updatedAt":%q,"sex":%q}`, id, updated, sex)
		if err := song.Put("S1", body); err != nil {
			p.t.Fatal(err)
		}
	}
}

// runOf runs a repository, and waits for the end of the job.
func (p *sharingSongs) runOf(repository, query string) gjson.Result {
	p.t.Helper()
	job := p.awaitJob(p.mustRequest(http.MethodPost, "/index/repository/"+repository+query, http.StatusAccepted).get("jobId").String())
	if job.Get("state").String() != string(core.JobSucceeded) {
		p.t.Fatalf("the job of %s: %s", repository, job.Raw)
	}
	return job
}

func (p *sharingSongs) record(repository, id string) string {
	return "/index/repository/" + repository + "/organization/S1/id/" + id
}

// found returns what GraphQL says of the documents: by id their sex and the codes of their repositories.
func (p *sharingSongs) found() map[string]string {
	p.t.Helper()
	if err := p.app.Index().Refresh(p.t.Context(), p.alias); err != nil {
		p.t.Fatal(err)
	}
	a := p.postBody("/"+p.alias+"/graphql", `{"query":"{analysis{hits(first:100,sort:[{fieldName:\"analysisId\"}]){edges{node{analysisId sex repositories{hits{edges{node{code}}}}}}}}}"}`, http.StatusOK)
	documents := map[string]string{}
	for _, node := range a.get("data.analysis.hits.edges.#.node").Array() {
		var codes []string
		for _, c := range node.Get("repositories.hits.edges.#.node.code").Array() {
			codes = append(codes, c.String())
		}
		slices.Sort(codes)
		documents[node.Get("analysisId").String()] = node.Get("sex").String() + " " + strings.Join(codes, " ")
	}
	if len(documents) == 0 {
		p.t.Logf("%s", a.raw)
	}
	return documents
}

// awaitFound waits until GraphQL returns these documents.
func (p *sharingSongs) awaitFound(want map[string]string) {
	p.t.Helper()
	p.eventually(wait, func() (bool, string) {
		diff := cmp.Diff(want, p.found())
		return diff == "", diff
	})
}

// conflicts returns the dead letters of conflicts as repository and record.
func (p *sharingSongs) conflicts() []string {
	p.t.Helper()
	var found []string
	for _, l := range p.deadLetters("?reason=conflict") {
		found = append(found, l.Get("repository").String()+" "+l.Get("recordId").String())
	}
	slices.Sort(found)
	return found
}

func (p *sharingSongs) wantConflicts(want ...string) {
	p.t.Helper()
	p.eventually(wait, func() (bool, string) {
		diff := cmp.Diff(want, p.conflicts())
		return diff == "", diff
	})
}

// TestSharedIndex: two Songs write to one index. A record of both is one document with a block for each; of records that differ the newer
// one is shown and the other one is a dead letter; and what one Song no longer has leaves only its own block.
func TestSharedIndex(t *testing.T) {
	t.Parallel()
	p := startSharing(t, "")
	both, one, two := code+" "+otherCode, code, otherCode
	p.has("same", "2024-01-01", "f", 0, 1)
	p.has("newer", "2024-01-01", "old", 0)
	p.has("newer", "2024-02-01", "new", 1)
	p.has("older", "2024-02-01", "new", 0)
	p.has("older", "2024-01-01", "old", 1)
	p.has("first", "2024-01-01", "f", 0)
	p.has("second", "2024-01-01", "f", 1)
	p.runOf(code, "")
	p.runOf(otherCode, "")
	want := map[string]string{
		"same": "f " + both, "newer": "new " + both, "older": "new " + both, "first": "f " + one, "second": "f " + two,
	}
	p.awaitFound(want)
	p.wantConflicts(one+" newer", two+" older")
	if n := p.metric("tutti_dead_letters_total", "reason", core.ReasonConflict); n < 2 {
		t.Errorf("%v conflicts are counted", n)
	}
	for _, l := range p.deadLetters("?reason=conflict") { // each has the record that is not shown
		raw := string(p.mustRequest(http.MethodGet, "/dead-letters/"+l.Get("id").String(), http.StatusOK).raw)
		if !strings.Contains(raw, "old") || strings.Contains(raw, "_tutti") || !strings.Contains(raw, "newer record of song.") {
			t.Error(raw)
		}
		if hint := gjson.Get(raw, "hint").String(); !strings.HasSuffix(hint, ", which shares the index "+p.alias+" and differs: make the records the same or remove one, then retry") {
			t.Errorf("hint %q", hint)
		}
		for _, member := range []string{"repository", "organization", "recordId"} { // a retry publishes it
			if got, want := gjson.Get(raw, "request."+member).String(), l.Get(member).String(); got != want {
				t.Errorf("the request of %s has the %s %q, want %q", l.Get("recordId"), member, got, want)
			}
		}
	}

	for path, want := range map[string]string{ // whichever record is shown
		p.record(one, "newer"): `"equal"`, p.record(two, "newer"): `"equal"`, p.record(one, "same"): `"equal"`, p.record(one, "second"): "",
	} {
		if got := p.mustRequest(http.MethodGet, path, http.StatusOK).get("index.comparison").Raw; got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}

	// A further success of the same records changes nothing, and a run finds nothing to write.
	p.runOf(code, "")
	p.mustRequest(http.MethodPost, p.record(otherCode, "older"), http.StatusAccepted)
	for repository, n := range map[string]int64{one: 4, two: 4} {
		job := p.runOf(repository, "?difference=true")
		if drift := job.Get("totals.drift"); drift.Get("unchanged").Int() != n || drift.Get("different").Int()+drift.Get("surplus").Int() != 0 {
			t.Errorf("%s: %s", repository, drift.Raw)
		}
	}
	p.awaitFound(want)
	p.wantConflicts(one+" newer", two+" older")

	// The newer record is withdrawn: the other one takes over.
	p.other.SetState("newer", "UNPUBLISHED")
	p.mustRequest(http.MethodPost, p.record(otherCode, "newer"), http.StatusAccepted)
	want["newer"] = "old " + one
	p.awaitFound(want)
	p.wantConflicts(two + " older")
	// The records become the same.
	p.has("older", "2024-02-02", "new", 1)
	p.mustRequest(http.MethodPost, p.record(otherCode, "older"), http.StatusAccepted)
	p.wantConflicts()

	// Removals take the own block only, by request and by a run.
	p.mustRequest(http.MethodDelete, p.record(otherCode, "first"), http.StatusAccepted)
	p.mustRequest(http.MethodDelete, p.record(otherCode, "older"), http.StatusAccepted)
	p.song.Delete("same")
	p.runOf(code, "")
	want["older"], want["same"] = "new "+one, "f "+two
	p.awaitFound(want)
	p.mustRequest(http.MethodDelete, p.record(otherCode, "second"), http.StatusAccepted)
	delete(want, "second")
	p.awaitFound(want)
	job := p.runOf(otherCode, "?difference=true")
	if drift := job.Get("totals.drift"); drift.Get("missing").Int() != 2 {
		t.Errorf("%s", drift.Raw)
	}
	want["second"], want["older"] = "f "+two, "new "+both
	p.awaitFound(want)
	p.wantConflicts()

	// Nobody sees what tutti adds, and the index is not replaced.
	for _, path := range []string{"/introspection/" + p.alias, "/introspection"} {
		if a := p.mustRequest(http.MethodGet, path, http.StatusOK); strings.Contains(string(a.raw), "_tutti") {
			t.Errorf("%s: %s", path, a.raw)
		}
	}
	a := p.postBody("/"+p.alias+"/graphql", `{"query":"{__schema{types{name fields{name}}}}"}`, http.StatusOK)
	if strings.Contains(string(a.raw), "tutti") {
		t.Errorf("%s", a.raw)
	}
	for _, path := range []string{"/index/repository/" + code + "?rebuild=true", "/index/repository/" + code + "/rollback"} {
		if a := p.mustRequest(http.MethodPost, path, http.StatusConflict); !strings.Contains(a.get("detail").String(), "share it") {
			t.Errorf("%s: %s", path, a.raw)
		}
	}
}

// TestSharedIndexOfAMappingFile: a strict mapping that has no field of tutti's is completed for a shared index.
func TestSharedIndexOfAMappingFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mapping.json")
	const mapping = `{"dynamic":"strict","properties":{"analysisId":{"type":"keyword"},"studyId":{"type":"keyword"},"analysisState":{"type":"keyword"},` +
		`"updatedAt":{"type":"date"},"sex":{"type":"keyword"}}}`
	if err := os.WriteFile(file, []byte(mapping), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startSharing(t, "mappingFile: "+file)
	p.has("a", "2024-01-01", "f", 0, 1)
	p.has("b", "2024-01-01", "f", 0, 1)
	p.runOf(code, "")
	p.runOf(otherCode, "")
	p.other.Delete("b")
	p.runOf(otherCode, "?force=true")
	p.awaitFound(map[string]string{"a": "f " + code + " " + otherCode, "b": "f " + code})
	p.wantConflicts()
}

// TestSharedFiles: the same file of two Songs is one document with a block for each, whatever its analyses are; a removal of an analysis, or
// of a file from it, takes the blocks of its own repository.
func TestSharedFiles(t *testing.T) {
	t.Parallel()
	p := startSharing(t, "documents: file")
	other := *p.world
	other.song = p.other
	p.putFiles("analysis", "both", "moved", "mine")
	other.putFiles("analysis", "both", "moved")
	other.putFiles("another", "theirs")
	want := func(blocks map[string]string) {
		t.Helper()
		p.eventually(wait, func() (bool, string) {
			got := map[string]string{}
			for id, source := range p.engine.documents(p.world) {
				var codes []string
				for _, c := range gjson.GetBytes(source, "repositories.#.code").Array() {
					codes = append(codes, c.String())
				}
				got[id] = strings.Join(codes, " ")
			}
			diff := cmp.Diff(blocks, got)
			return diff == "", diff
		})
	}
	both := code + " " + otherCode
	p.runOf(code, "")
	p.runOf(otherCode, "")
	want(map[string]string{"both": both, "moved": both, "mine": code, "theirs": otherCode})
	other.putFiles("analysis", "both")
	p.mustRequest(http.MethodPost, p.record(otherCode, "analysis"), http.StatusAccepted)
	want(map[string]string{"both": both, "moved": code, "mine": code, "theirs": otherCode})
	p.song.Delete("analysis")
	p.mustRequest(http.MethodPost, p.record(code, "analysis"), http.StatusAccepted)
	want(map[string]string{"both": otherCode, "theirs": otherCode})
	p.other.Delete("another")
	p.runOf(otherCode, "")
	want(map[string]string{"both": otherCode})
	p.mustRequest(http.MethodDelete, p.record(otherCode, "analysis"), http.StatusAccepted)
	want(map[string]string{})
	p.wantConflicts()
}
