package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/tools/testkit/dataset"
)

// spliced is the member that tutti puts in front of a record's own.
const spliced = `{"repositories":`

// upstreamDocuments returns what the index must hold: the bodies of every published analysis, by id. A line feed in a
// body becomes a space.
func (w *world) upstreamDocuments() map[string]string {
	want := map[string]string{}
	for _, study := range w.song.Studies() {
		for _, a := range w.song.Analyses(study, "PUBLISHED") {
			want[a.ID] = strings.NewReplacer("\n", " ", "\r", " ").Replace(string(a.Body))
		}
	}
	return want
}

// documents returns every document of the index by id, as the records' own bytes: the spliced member is checked and
// taken out.
func (w *world) documents() map[string]string {
	w.t.Helper()
	own := map[string]string{}
	for id, source := range w.engine.documents(w) {
		own[id] = w.withoutRepositories(id, source)
	}
	return own
}

func (w *world) withoutRepositories(id string, source []byte) string {
	w.t.Helper()
	rest, ok := bytes.CutPrefix(source, []byte(spliced))
	if block := w.block.Load(); block != nil && bytes.HasPrefix(rest, *block) {
		return "{" + strings.TrimPrefix(string(rest[len(*block):]), ",")
	}
	decoder := json.NewDecoder(bytes.NewReader(rest))
	var got []map[string]string
	if err := decoder.Decode(&got); err != nil || !ok {
		w.t.Fatalf("document %q does not begin with its repositories: %v: %.200s", id, err, source)
	}
	want := []map[string]string{{
		"code": code, "name": "Test repository", "organization": "Example Institute", "country": "CA",
		"url": w.song.URL(), "type": "song",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Fatalf("repositories of %q (-want +got):\n%s", id, diff)
	}
	block := bytes.Clone(rest[:decoder.InputOffset()])
	w.block.Store(&block)
	return "{" + strings.TrimPrefix(string(rest[len(block):]), ",")
}

// difference describes how the documents differ from those wanted, "" when they do not. Ids in except are ignored.
func difference(want, got map[string]string, except ...string) string {
	var faults []string
	for id, body := range want {
		held, ok := got[id]
		switch {
		case slices.Contains(except, id):
		case !ok:
			faults = append(faults, fmt.Sprintf("%q is missing", id))
		case held != body:
			faults = append(faults, fmt.Sprintf("%q differs:\n  upstream %.300s\n  index    %.300s", id, body, held))
		}
	}
	for id := range got {
		if _, ok := want[id]; !ok && !slices.Contains(except, id) {
			faults = append(faults, fmt.Sprintf("%q should not be there", id))
		}
	}
	if len(faults) == 0 {
		return ""
	}
	slices.Sort(faults)
	return fmt.Sprintf("%d differences, %d documents wanted, %d there:\n%s", len(faults), len(want), len(got),
		strings.Join(faults[:min(len(faults), 8)], "\n"))
}

// wantConverged fails the test unless the index equals the upstream, byte for byte.
func (w *world) wantConverged(except ...string) {
	w.t.Helper()
	if fault := difference(w.upstreamDocuments(), w.documents(), except...); fault != "" {
		w.t.Fatal(fault)
	}
}

// awaitConverged waits until the index equals the upstream.
func (w *world) awaitConverged(limit time.Duration, except ...string) {
	w.t.Helper()
	w.eventually(limit, func() (bool, string) {
		fault := difference(w.upstreamDocuments(), w.documents(), except...)
		return fault == "", fault
	})
}

// fill adds a study of n generated analyses to the world's Song server, and returns their ids.
func (w *world) fill(study string, n int) []string {
	w.song.AddStudy(study)
	analyses := dataset.GenerateAnalyses(1, study, n)
	w.song.PutAll(analyses...)
	ids := make([]string, n)
	for i, a := range analyses {
		ids[i] = a.ID
	}
	return ids
}

// put puts a minimal analysis into a study; extra are more members, such as `"a":1`.
func (w *world) put(study, id, extra string) {
	w.t.Helper()
	if extra != "" {
		extra = "," + extra
	}
	body := fmt.Appendf(nil, `{"analysisId":%s,"studyId":%s,"analysisState":"PUBLISHED"%s}`, quoted(id), quoted(study), extra)
	if err := w.song.Put(study, body); err != nil {
		w.t.Fatal(err)
	}
}

// quoted returns a JSON string.
func quoted(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(text)
}
