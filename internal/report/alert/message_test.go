package alert_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/report/alert"
)

var update = flag.Bool("update", false, "write the golden files")

// bodies runs events through a process with one target of a format, and returns the bodies that it sends.
func bodies(t *testing.T, format alert.Format, make func(w *world)) []string {
	t.Helper()
	var bodies []string
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		slack := target
		slack.Format = format
		defer stop(t, w.process(t, nil, slack))
		make(w)
		time.Sleep(2 * time.Minute)
		for _, s := range w.received() {
			if s.ID != "" {
				s.raw = strings.Replace(s.raw, s.ID, "MESSAGE-ID", 1)
			}
			bodies = append(bodies, s.raw)
		}
	})
	return bodies
}

// TestBodies compares the messages of both formats with the golden files.
func TestBodies(t *testing.T) {
	for _, format := range []alert.Format{alert.FormatJSON, alert.FormatSlack} {
		t.Run(string(format), func(t *testing.T) {
			var got strings.Builder
			for _, body := range bodies(t, format, func(w *world) {
				w.change(core.Job{
					ID: "01a&b|c>", Repository: "song.<a>", Organization: "S1 & S2", State: core.JobFailed,
					Error: &core.JobError{Code: "unavailable", Message: "the <!channel> & `list` did\nnot answer"},
				})
				w.change(core.Job{ID: "02", Repository: "song.b", State: core.JobPaused, Pause: &core.JobPause{Reason: "waiting for the repository: status 503"}})
				for range 7 {
					w.letter("song.b", 0)
				}
				w.letter("gone", 0)
			}) {
				var indented bytes.Buffer
				if err := json.Indent(&indented, []byte(body), "", "  "); err != nil {
					t.Fatal(err)
				}
				got.WriteString(indented.String() + "\n")
			}
			file := filepath.Join("testdata", string(format)+".golden.json")
			if *update {
				if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSlackLimits: whatever texts are long or must be escaped, no text of a block exceeds 3,000 characters, and no entity is cut.
func TestSlackLimits(t *testing.T) {
	for _, piece := range []string{"x", "&", "<", "é", "日", "a>"} {
		long := strings.Repeat(piece, 5000)
		all := bodies(t, alert.FormatSlack, func(w *world) {
			w.change(core.Job{ID: long, Repository: long, Organization: long, State: core.JobFailed, Error: &core.JobError{Code: long, Message: long}})
			for range 500 {
				w.change(core.Job{ID: time.Now().String(), Repository: long, State: core.JobPartial})
			}
		})
		if len(all) != 2 {
			t.Fatalf("%d messages", len(all))
		}
		for _, body := range all {
			var m struct {
				Blocks []struct{ Text struct{ Text string } }
			}
			if err := json.Unmarshal([]byte(body), &m); err != nil || len(m.Blocks) < 2 || len(m.Blocks) > 50 {
				t.Fatalf("%d blocks, %v", len(m.Blocks), err)
			}
			for _, b := range m.Blocks {
				text := b.Text.Text
				rest := strings.NewReplacer("&amp;", "", "&lt;", "", "&gt;", "").Replace(text)
				if len(text) > 3000 || text == "" || !utf8.ValidString(text) || strings.Contains(rest, "&") || strings.Count(rest, "<") > 1 {
					t.Errorf("%d bytes: %s", len(text), text)
				}
			}
		}
	}
}

// TestTest: a test message goes to each target once, without following redirects, and errors do not show the URL.
func TestTest(t *testing.T) {
	var followed bool
	mux := http.NewServeMux()
	mux.HandleFunc("/s3cret/ok", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("User-Agent") != "tutti/1" {
			t.Errorf("%s %v", r.Method, r.Header)
		}
		_, _ = w.Write([]byte("thanks\n"))
	})
	mux.HandleFunc("/s3cret/moved", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/s3cret/new", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/s3cret/new", func(http.ResponseWriter, *http.Request) { followed = true })
	mux.HandleFunc("/s3cret/no", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no_service", http.StatusNotFound) })
	server := httptest.NewServer(mux)
	defer server.Close()
	closed := httptest.NewServer(mux)
	closed.Close()
	var targets []alert.Target
	for _, u := range []string{server.URL + "/s3cret/ok", server.URL + "/s3cret/moved", server.URL + "/s3cret/no", closed.URL + "/s3cret/ok"} {
		targets = append(targets, alert.Target{URL: u, Format: alert.FormatSlack})
	}
	results := alert.Test(t.Context(), targets, alert.Config{UserAgent: "tutti/1"})
	if r := results[0]; r.Err != nil || r.Status != 200 || r.Body != "thanks" || "http://"+r.Host != server.URL {
		t.Errorf("%+v", r)
	}
	for i, want := range map[int]string{
		1: "status 307: redirects are not followed; set the address that it redirects to, on " + server.URL, 2: "status 404: no_service", 3: "nothing listens there",
	} {
		if err := results[i].Err; err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%d: %v, want %s", i, err, want)
		}
	}
	if followed {
		t.Error("the redirect was followed")
	}
}
