package app_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tutti/internal/app/storage"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/metadata"
)

// tokens turns on auth.mode token.
const tokens = "auth: {mode: token}\n"

// firstKey creates a key in the store of a world whose tutti is stopped.
func (b *builtIn) firstKey(scopes ...string) (id, text string) {
	b.t.Helper()
	keys, err := b.openKeys()
	if err != nil {
		b.t.Fatal(err)
	}
	key, text, err := keys.Create(b.t.Context(), "first", scopes, time.Time{})
	if err != nil {
		b.t.Error(err)
	}
	if err := keys.Close(b.t.Context()); err != nil {
		b.t.Error(err)
	}
	return key.ID, text
}

func (b *builtIn) openKeys() (*storage.KeyStore, error) {
	cfg, err := config.Parse([]byte(b.yaml()), nil)
	if err != nil {
		return nil, err
	}
	return storage.OpenKeys(b.t.Context(), cfg)
}

// key creates a key with the running tutti.
func (b *builtIn) key(scopes string) (id, text string) {
	b.t.Helper()
	a := b.mustSend(http.MethodPost, "/keys", `{"name":"made","scopes":`+scopes+`}`, http.StatusOK)
	return a.get("id").String(), a.get("key").String()
}

// reader returns a world whose tutti reads another one's built-in repository as it would read a Song server.
func reader(t *testing.T, source *builtIn, token string) *world {
	t.Helper()
	return newWorld(t, settings{pageSize: 20, configuration: func(w *world) string {
		return fmt.Sprintf(`
server: {listen: "127.0.0.1:0"}
dataDir: %q
index: {url: %q, replicas: 0}
repositories:
  - {code: %s, type: song, url: %q, indexName: %s, pageSize: %d, token: %q}
`, w.dir, w.engine.url(), code, source.url, w.alias, w.set.pageSize, token)
	}})
}

// awaitMirrored waits until the index of w holds exactly the published analyses of source, byte for byte.
func (w *world) awaitMirrored(source *builtIn) {
	w.t.Helper()
	w.eventually(wait, func() (bool, string) {
		fault := difference(source.storedAnalyses("PUBLISHED"), ownBytes(w.t, w.engine.documents(w), map[string]string{
			"code": code, "name": "", "organization": "", "country": "", "url": source.url, "type": "song",
		}))
		return fault == "", fault
	})
}

// TestBuiltInRead: a second tutti reads the built-in repository over HTTP as a Song server, with a key that may read no
// more than what is published.
func TestBuiltInRead(t *testing.T) {
	t.Parallel()
	source := newBuiltIn(t, plan{more: tokens})
	var published, others []string
	source.changeWithoutEvents(func(ctx context.Context, r *metadata.Repository) {
		published, others = source.addAnalyses(ctx, r, "S1", 75)
		source.addAnalyses(ctx, r, "S.2_x-3", 10)
		source.addAnalyses(ctx, r, "S4", 0)
	})
	_, source.token = source.firstKey("tutti.WRITE")
	source.startReady()
	source.mustSend(http.MethodPost, "/schemas", plainType, http.StatusOK)
	_, token := source.key(`["OTHER.READ"]`)

	w := reader(t, source, token)
	w.start()
	w.awaitPaused(false)
	job := w.run("", "", core.JobSucceeded)
	counted(t, job, map[string]int64{
		"totals.expected": 64 + 8, "totals.indexed": 64 + 8, "totals.removed": 0, "totals.rejected": 0, "organizations.#": 3,
	})
	w.awaitMirrored(source)

	changed, unpublished, suppressed := published[0], published[1], published[2]
	source.mustSend(http.MethodPatch, analysisPath("S1", changed), `{"experiment":{"platform":"ONT","note":null}}`, http.StatusOK)
	source.mustSend(http.MethodPut, statePath("S1", "unpublish", unpublished), "", http.StatusOK)
	source.mustSend(http.MethodPut, statePath("S1", "suppress", suppressed), "", http.StatusOK)
	for _, id := range []string{changed, unpublished, suppressed, others[0], "nobody-has-it"} {
		w.trigger("S1", id)
	}
	w.trigger("none", published[3]) // of a study that does not exist: it stays
	w.awaitOutcomes(core.OutcomeIndexed, 64+8+1)
	w.awaitOutcomes(core.OutcomeRemoved, 4)
	w.awaitOutcomes(core.OutcomeMismatch, 1)
	w.awaitMirrored(source)

	for _, id := range published[3:8] {
		source.mustSend(http.MethodPut, statePath("S1", "unpublish", id), "", http.StatusOK)
	}
	counted(t, w.run("S1", "", core.JobSucceeded), map[string]int64{"totals.expected": 57, "totals.removed": 5})
	w.awaitMirrored(source)
	if letters := w.deadLettersByRecord(); len(letters) != 0 {
		t.Errorf("dead letters: %+v", letters)
	}

	// A key that is no longer taken ends the run with the reason, and removes nothing.
	before := len(w.engine.documents(w))
	keys := source.mustSend(http.MethodGet, "/keys", "", http.StatusOK)
	source.mustSend(http.MethodDelete, "/keys/"+keys.get(`keys.#(name=="made").id`).String(), "", http.StatusOK)
	job = w.run("", "?force=true", core.JobFailed)
	if text := job.Get("error.message").String(); !strings.Contains(text, "401") {
		t.Errorf("the job does not say why: %s", job.Raw)
	}
	if n := len(w.engine.documents(w)); n != before {
		t.Errorf("%d documents after a run without a valid key, want %d", n, before)
	}
}
