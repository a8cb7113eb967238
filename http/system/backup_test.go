package system_test

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
	"tutti/internal/tools/apitest"
)

func TestBackup(t *testing.T) {
	res, body := apitest.Do(t, apitest.NewHandler(t, apitest.Working(), api.Config{}), apitest.Ask{Method: "GET", Target: "/backup"})
	if res.StatusCode != http.StatusOK || string(body) != "archive" {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
	if _, res, body := apitest.Exchange(t, apitest.NewHandler(t, apitest.Silent(), api.Config{}), apitest.Ask{Method: "HEAD", Target: "/backup"}); res.StatusCode != http.StatusOK || len(body) > 0 {
		t.Errorf("HEAD: got %d %s", res.StatusCode, body)
	}
}

// TestBackupFailsAtOnce: an error before the first bytes is a problem.
func TestBackupFailsAtOnce(t *testing.T) {
	p := apitest.Working()
	p.BackupFn = func(context.Context, io.Writer) error {
		return &core.Error{Code: core.CodeConflict, Message: "another backup is in progress", Hint: "wait"}
	}
	res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "GET", Target: "/backup"})
	apitest.WantProblem(t, res, body, http.StatusConflict, "conflict", "another backup is in progress")
}

// TestBackupFailsMidway: the client sees an error, not the end of the body.
func TestBackupFailsMidway(t *testing.T) {
	p := apitest.Working()
	p.BackupFn = func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, strings.Repeat("a", 2*api.ListChunk))
		return errors.Join(err, errors.New("the disk is gone"))
	}
	server := httptest.NewServer(apitest.NewHandler(t, p, api.Config{}))
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
