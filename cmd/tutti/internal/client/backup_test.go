package client_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"tutti/cmd/tutti/internal/client"
	"tutti/internal/core"
)

func TestBackup(t *testing.T) {
	for name, test := range map[string]struct {
		contentType string
		cut         bool
		want        string
		fails       bool
	}{
		"whole":        {"application/x-tar", false, "archive", false},
		"cut":          {"application/x-tar", true, "archive", true},
		"another type": {"text/html", false, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet || r.URL.Path != "/base/backup" || r.Header.Get("Accept") != "application/x-tar" {
					t.Errorf("%s %s, Accept %s", r.Method, r.URL, r.Header.Get("Accept"))
				}
				w.Header().Set("Content-Type", test.contentType)
				_, _ = io.WriteString(w, "archive")
				_ = http.NewResponseController(w).Flush()
				if test.cut {
					panic(http.ErrAbortHandler)
				}
			}))
			defer server.Close()
			c, err := client.New(client.Config{Server: server.URL + "/base", HTTP: server.Client()})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			err = c.Backup(t.Context(), func(r io.Reader) error {
				raw, err := io.ReadAll(r)
				got = string(raw)
				return err
			})
			if got != test.want || (err != nil) != test.fails || test.cut && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("got %q, %v (%s)", got, err, core.CodeOf(err))
			}
		})
	}
}
