package app_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"tutti/internal/tools/testkit"
)

// TestStorageCheck: with schemas.storage an analysis is published once Score has its files, also while Score asks tutti before it
// answers; when Score is gone, publishing is 503.
func TestStorageCheck(t *testing.T) {
	t.Parallel()
	var b atomic.Pointer[builtIn]
	score, err := testkit.NewScore(testkit.ScoreConfig{Token: "t", BasePath: "/base", BeforeObject: func(string) {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, b.Load().url+"/studies/S1", http.NoBody)
		if err != nil {
			t.Error(err)
			return
		}
		res, err := b.Load().client.Do(req)
		if err != nil || res.StatusCode != http.StatusOK || res.Body.Close() != nil {
			t.Errorf("reading while Score answers: %v", err)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(score.Close)
	w := startBuiltIn(t, plan{more: "schemas: {storage: {url: \"" + score.URL() + "/\", token: t}}\n"})
	b.Store(w)
	id := w.submit("S1")
	file := gjson.GetBytes(w.mustSend(http.MethodGet, analysisPath("S1", id), "", http.StatusOK).raw, "files.0")
	object, size, md5 := file.Get("objectId").Str, file.Get("fileSize").Int(), file.Get("fileMd5sum").Str
	publish := func(query string, status int, errorID string) {
		t.Helper()
		a := w.mustSend(http.MethodPut, statePath("S1", "publish", id)+query, "", status)
		if got := a.get("errorId").String(); got != errorID {
			t.Errorf("errorId %q, want %q: %s", got, errorID, a.raw)
		}
	}
	publish("", http.StatusConflict, "missing.storage.objects")
	score.Put(object, size+1, md5)
	publish("", http.StatusConflict, "mismatching.storage.object.sizes")
	score.Put(object, size, nil)
	publish("?ignoreUndefinedMd5=false", http.StatusConflict, "mismatching.storage.object.checksums")
	if n := len(w.storedAnalyses("PUBLISHED")); n != 0 {
		t.Errorf("%d published analyses", n)
	}
	publish("?ignoreUndefinedMd5=true", http.StatusOK, "")
	id = w.submit("S1")
	score.Close()
	publish("", http.StatusServiceUnavailable, "storage.service.error")
	w.awaitConverged()
	if n := len(w.documents()); n != 1 {
		t.Errorf("%d documents, want 1", n)
	}
}

// TestPublishOlderVersion: an analysis whose type has a later version by now is not published.
func TestPublishOlderVersion(t *testing.T) {
	t.Parallel()
	b := startBuiltIn(t, plan{})
	id := b.submit("S1")
	b.mustSend(http.MethodPost, "/schemas", plainType, http.StatusOK)
	a := b.mustSend(http.MethodPut, statePath("S1", "publish", id), "null", http.StatusConflict)
	if a.get("errorId").String() != "analysis.type.incorrect.version" {
		t.Errorf("publishing version 1: %s", a.raw)
	}
	b.mustSend(http.MethodPatch, analysisPath("S1", id), "{}", http.StatusOK)
	b.publish("S1", id)
}
