package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestIndexIDs: the file is sent as it is, in the format that its first line has; with --wait the ids that are not in the index are
// printed at the end, and the exit code is that of the job.
func TestIndexIDs(t *testing.T) {
	t.Parallel()
	const job = `{"id":"j1","scope":"ids","repository":"song","organization":"S1","indexName":"a","state":"partial","totals":{"expected":4,"fetched":4,"indexed":1}}`
	const ids = `{"organization":"S1","id":"a","outcome":"indexed"}` + "\n" + `{"organization":"S1","id":"b","outcome":"stale"}` + "\n" +
		`{"organization":"S1","id":"c\u001b","outcome":"deadLettered","reason":"rejected","hint":"fix it"}` + "\n" + `{"organization":"S1","id":"d","outcome":"removed"}` + "\n"
	const missing = "deadLettered\tS1\tc\\x1b\trejected\tfix it\nremoved\tS1\td\n"
	var got string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "GET /jobs/j1/ids":
			w.Header().Set("Content-Type", "application/x-ndjson")
			_, _ = io.WriteString(w, ids)
		case "GET /jobs/j1/events":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "id: 1\nevent: job\ndata: "+job+"\n\nid: 1\nevent: end\ndata: {\"state\":\"partial\"}\n\n")
		case "GET /jobs/j1":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, job)
		default:
			body, _ := io.ReadAll(r.Body)
			got = r.URL.Path + " " + r.Header.Get("Content-Type") + " " + string(body)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, `{"successful":true,"indexName":"a","requestId":"r1","jobId":"j1","ids":4,"duplicates":2}`)
		}
	}))
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "ids")
	write := func(list string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a\nb\n")
	code, stdout, stderr := call(t, "index", "song", "S1", "--ids", file, "--server", s.URL)
	if want := "/index/repository/song/organization/S1/ids text/plain a\nb\n"; code != 0 || got != want || !strings.Contains(stdout, "4 ids of organization S1 of song (2 lines repeat one)") {
		t.Errorf("code %d, %q, %s%s", code, got, stdout, stderr)
	}
	write("\n {\"organization\":\"S1\",\"id\":\"a\"}\n")
	code, stdout, stderr = call(t, "index", "song", "--ids", file, "--wait", "--server", s.URL)
	if code != 2 || !strings.HasPrefix(got, "/index/repository/song/ids application/x-ndjson ") || !strings.HasSuffix(stdout, missing) {
		t.Errorf("code %d, %q, %q, %s", code, got, stdout, stderr)
	}
	if code, stdout, _ = call(t, "jobs", "ids", "j1", "--server", s.URL); code != 0 || stdout != "indexed\tS1\ta\nstale\tS1\tb\n"+missing {
		t.Errorf("code %d, %q", code, stdout)
	}
	if code, stdout, _ = call(t, "jobs", "ids", "j1", "--output", "json", "--server", s.URL); code != 0 || stdout != ids {
		t.Errorf("code %d, %q", code, stdout)
	}
	for name, args := range map[string][]string{
		"with an id": {"index", "song", "S1", "a", "--ids", file}, "with a flag of runs": {"index", "song", "--ids", file, "--force"},
		"no such file": {"index", "song", "--ids", file + "-"},
	} {
		if code, _, stderr := call(t, append(args, "--server", s.URL)...); code != 1 || !strings.Contains(stderr, "ids") {
			t.Errorf("%s: code %d, %s", name, code, stderr)
		}
	}
}
