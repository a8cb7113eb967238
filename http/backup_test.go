package http_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tutti/http/api"
	"tutti/internal/core"
)

func TestBackup(t *testing.T) {
	res, body := do(t, newHandler(t, working(), api.Config{}), ask{method: "GET", target: "/backup"})
	if res.StatusCode != http.StatusOK || string(body) != "archive" {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
	if _, res, body := exchange(t, newHandler(t, silent(), api.Config{}), ask{method: "HEAD", target: "/backup"}); res.StatusCode != http.StatusOK || len(body) > 0 {
		t.Errorf("HEAD: got %d %s", res.StatusCode, body)
	}
}

// TestBackupFailsAtOnce: an error before the first bytes is a problem.
func TestBackupFailsAtOnce(t *testing.T) {
	p := working()
	p.BackupFn = func(context.Context, io.Writer) error {
		return &core.Error{Code: core.CodeConflict, Message: "another backup is in progress", Hint: "wait"}
	}
	res, body := do(t, newHandler(t, p, api.Config{}), ask{method: "GET", target: "/backup"})
	wantProblem(t, res, body, http.StatusConflict, "conflict", "another backup is in progress")
}

// TestBackupFailsMidway: the client sees an error, not the end of the body.
func TestBackupFailsMidway(t *testing.T) {
	p := working()
	p.BackupFn = func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, strings.Repeat("a", 2*api.ListChunk))
		return errors.Join(err, errors.New("the disk is gone"))
	}
	server := httptest.NewServer(newHandler(t, p, api.Config{}))
	defer server.Close()
	res, err := server.Client().Get(server.URL + "/backup")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadAll(res.Body); res.StatusCode != http.StatusOK || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("status %d, reading the body: %v", res.StatusCode, err)
	}
}
