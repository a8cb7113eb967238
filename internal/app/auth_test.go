package app_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tutti/internal/core"
)

// wantRefused fails the test unless a request is answered with a status, a Bearer challenge and a message that contains says.
func (b *builtIn) wantRefused(token, method, path, body string, status int, says string) {
	b.t.Helper()
	a := b.mustSendAs(token, method, path, body, status)
	challenge := a.header.Get("WWW-Authenticate")
	if !strings.HasPrefix(challenge, "Bearer") || a.header.Get("Content-Type") != "application/problem+json" {
		b.t.Errorf("%s %s: challenge %q, content type %q", method, path, challenge, a.header.Get("Content-Type"))
	}
	if text := a.get("detail").String() + " " + a.get("hint").String(); !strings.Contains(text, says) {
		b.t.Errorf("%s %s: %q does not say %q", method, path, text, says)
	}
	if token != "" && strings.Contains(string(a.raw), token) {
		b.t.Errorf("%s %s: the answer holds the token", method, path)
	}
}

// TestAuthFirstKey: the first key is made in the folder of a tutti that does not run; beside one that runs, making keys is
// refused with what to do instead.
func TestAuthFirstKey(t *testing.T) {
	t.Parallel()
	b := newBuiltIn(t, plan{more: tokens})
	id, key := b.firstKey("tutti.WRITE")
	b.startReady()
	keys, err := b.openKeys()
	if err == nil {
		_ = keys.Close(t.Context())
		t.Fatal("the keys of a running tutti were opened")
	}
	if core.CodeOf(err) != core.CodeConflict || !strings.Contains(core.MessageOf(err), "another tutti") ||
		!strings.Contains(core.HintOf(err), "--server") {
		t.Errorf("opening the keys of a running tutti: %s, %q, hint %q", core.CodeOf(err), core.MessageOf(err), core.HintOf(err))
	}
	b.wantRefused("", http.MethodGet, "/keys", "", http.StatusUnauthorized, "Authorization: Bearer")
	b.token = key
	a := b.mustSend(http.MethodGet, "/keys", "", http.StatusOK)
	if a.get("keys.#").Int() != 1 || a.get("keys.0.id").String() != id || a.get("keys.0.name").String() != "first" {
		t.Errorf("keys: %s", a.raw)
	}
	secret := strings.SplitN(key, "_", 3)[2]
	if len(secret) < 40 {
		t.Fatalf("the secret of a key has %d characters", len(secret))
	}
	if strings.Contains(string(a.raw), secret) {
		t.Error("the list of keys shows a secret")
	}
	b.prepareStudies("S1")
	b.publish("S1", b.submit("S1"))
	b.awaitConverged()
	b.stop()
	b.start() // the key is still good, and its secret is nowhere
	b.mustSend(http.MethodGet, "/keys", "", http.StatusOK)
	b.stop()
	if lines := strings.Join(b.logs.all(), ""); strings.Contains(lines, secret) {
		t.Error("the log holds the secret of a key")
	}
	files, err := os.ReadDir(filepath.Join(b.dir, "store"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the store has no files: %v", err)
	}
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(b.dir, "store", f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content), secret) {
			t.Errorf("%s holds the secret of a key", f.Name())
		}
	}
}

// TestAuthOrganization: the key of an organization submits, publishes and indexes there and nowhere else; one that only
// reads can do none of it. A revoked key is refused at once.
func TestAuthOrganization(t *testing.T) {
	t.Parallel()
	b := newBuiltIn(t, plan{more: tokens})
	_, b.token = b.firstKey("tutti.WRITE")
	b.startReady()
	b.prepareStudies("S1", "S2")
	writerID, writer := b.key(`["S1.WRITE"]`)
	_, reading := b.key(`["S1.READ"]`)
	_, foreign := b.key(`["S2.READ"]`)

	id := b.mustSendAs(writer, http.MethodPost, "/submit/S1", b.payload("S1", ""), http.StatusOK).get("analysisId").String()
	b.mustSendAs(writer, http.MethodPut, statePath("S1", "publish", id), "", http.StatusOK)
	b.awaitConverged()
	b.mustSendAs(writer, http.MethodPatch, analysisPath("S1", id), `{"experiment":{"merged":true}}`, http.StatusOK)
	b.awaitOutcomes(core.OutcomeIndexed, 2)
	b.mustSendAs(writer, http.MethodPost, "/index/repository/local/organization/S1/id/"+id, "", http.StatusAccepted)
	b.awaitOutcomes(core.OutcomeIndexed, 3)
	b.mustSendAs(writer, http.MethodPost, "/index/repository/local/organization/S1", "", http.StatusAccepted)
	b.awaitConverged()
	hidden, other := b.submit("S1"), b.submit("S2")

	for _, tc := range []struct{ method, path, body, scope string }{
		{http.MethodPost, "/submit/S2", b.payload("S2", ""), "S2.WRITE"},
		{http.MethodPut, statePath("S2", "publish", other), "", "S2.WRITE"},
		{http.MethodPut, statePath("S2", "suppress", other), "", "S2.WRITE"},
		{http.MethodPatch, analysisPath("S2", other), `{"experiment":{}}`, "S2.WRITE"},
		{http.MethodPut, analysisPath("S2", other), b.payload("S2", ""), "S2.WRITE"},
		{http.MethodPost, "/submit/none", b.payload("none", ""), "none.WRITE"},
		{http.MethodPost, "/index/repository/local/organization/S2", "", "S2.WRITE"},
		{http.MethodPost, "/index/repository/local/organization/S2/id/" + other, "", "S2.WRITE"},
		{http.MethodDelete, "/index/repository/local/organization/S2/id/" + other, "", "S2.WRITE"},
		{http.MethodPost, "/index/repository/local/organization/S1?force=true", "", "tutti.WRITE"},
		{http.MethodPost, "/index/repository/local", "", "tutti.WRITE"},
		{http.MethodPost, "/schemas", plainType, "tutti.WRITE"},
		{http.MethodPost, "/studies/S3", "", "tutti.WRITE"},
		{http.MethodPost, "/keys", `{"name":"more","scopes":["tutti.WRITE"]}`, "tutti.WRITE"},
		{http.MethodGet, "/keys", "", "tutti.WRITE"},
		{http.MethodDelete, "/keys/" + writerID, "", "tutti.WRITE"},
		{http.MethodPost, "/notifications/local", `{}`, "tutti.WRITE"},
	} {
		b.wantRefused(writer, tc.method, tc.path, tc.body, http.StatusForbidden, tc.scope)
		b.wantRefused(reading, tc.method, tc.path, tc.body, http.StatusForbidden, tc.scope)
		b.wantRefused("", tc.method, tc.path, tc.body, http.StatusUnauthorized, "Bearer")
	}
	for _, tc := range []struct{ method, path string }{
		{http.MethodPost, "/submit/S1"},
		{http.MethodPut, statePath("S1", "publish", hidden)},
		{http.MethodPost, "/index/repository/local/organization/S1"},
	} {
		b.wantRefused(reading, tc.method, tc.path, "", http.StatusForbidden, "S1.WRITE")
	}
	// None of the refused requests had an effect.
	if kept := b.storedAnalyses("UNPUBLISHED"); len(kept) != 2 || kept[hidden] == "" || kept[other] == "" {
		t.Errorf("unpublished: %v", kept)
	}
	b.wantConverged()
	b.wantReadable(reading, "S1", hidden, http.StatusOK)
	b.wantReadable(writer, "S1", hidden, http.StatusOK)
	b.wantReadable(foreign, "S1", hidden, http.StatusNotFound)
	b.wantReadable(reading, "S2", other, http.StatusNotFound)
	b.wantReadable(reading, "S1", id, http.StatusOK)
	for _, path := range []string{"/studies/S1/analysis", "/studies/S1/analysis/paginated"} {
		for _, states := range []string{"UNPUBLISHED", "PUBLISHED,UNPUBLISHED", "SUPPRESSED"} {
			b.wantRefused(foreign, http.MethodGet, path+"?analysisStates="+states, "", http.StatusForbidden, "S1.READ")
		}
		for token, want := range map[string]bool{reading: true, writer: true, foreign: false} {
			states := map[bool]string{true: everyState, false: "PUBLISHED"}[want]
			a := b.mustSendAs(token, http.MethodGet, path+"?analysisStates="+states, "", http.StatusOK)
			if strings.Contains(string(a.raw), hidden) != want || !strings.Contains(string(a.raw), id) {
				t.Errorf("%s in %s: %s", path, states, a.raw)
			}
		}
	}
	b.wantReadable(writer, "S1", id, http.StatusOK)

	a := b.mustSend(http.MethodDelete, "/keys/"+writerID, "", http.StatusOK)
	if a.get("revokedAt").String() == "" {
		t.Errorf("a revoked key: %s", a.raw)
	}
	b.wantRefused(writer, http.MethodPost, "/submit/S1", b.payload("S1", ""), http.StatusUnauthorized, "revoked")
	b.wantRefused(reading+"x", http.MethodGet, "/studies/all", "", http.StatusUnauthorized, "API key")
	b.wantRefused("not-a-token", http.MethodGet, "/studies/all", "", http.StatusUnauthorized, "tutti_")
}

// wantReadable fails the test unless a read of an analysis with a token has a status.
func (b *builtIn) wantReadable(token, study, id string, status int) {
	b.t.Helper()
	b.mustSendAs(token, http.MethodGet, analysisPath(study, id), "", status)
	b.mustSendAs(token, http.MethodGet, analysisPath(study, id)+"/files", "", status)
}

// TestStoreLocked: the folder of the embedded store belongs to one process, also with an external queue.
func TestStoreLocked(t *testing.T) {
	t.Parallel()
	b := startBuiltIn(t, plan{set: settings{queueURL: externalQueue(t), faulty: true}})
	second := b.newApp()
	err := second.Start(t.Context())
	if err == nil {
		_ = second.Stop(t.Context())
	}
	folder := filepath.Join(b.dir, "store")
	if core.CodeOf(err) != core.CodeConflict || !strings.Contains(fmt.Sprint(err), folder) {
		t.Errorf("starting a second app: %v, want a conflict that names %s", err, folder)
	}
	if c, _, err := b.tryChild(); err == nil {
		c.kill()
		t.Error("a second process started on the same store")
	}
	if !strings.Contains(strings.Join(b.logs.all(), ""), "another tutti uses the data folder "+folder) {
		t.Errorf("the second process does not say why:\n%s", b.logs.tail())
	}
	b.publish("S1", b.submit("S1"))
	b.awaitConverged()
}
