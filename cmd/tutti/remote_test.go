package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// call runs the command as a process would.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, complaints strings.Builder
	code = run(args, &out, &complaints)
	return code, out.String(), complaints.String()
}

// server answers every request with a status and a body, as tutti does.
func server(t *testing.T, status int, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// guarded asks for a token as tutti behind a gateway does, and answers every list of those who have it with nothing.
func guarded(t *testing.T, token string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprint(w, `{"detail":"who asks is not known","code":"unauthenticated"}`)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"jobs":[],"deadLetters":[]}`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestToken(t *testing.T) {
	url := guarded(t, "s3cret")
	const rejected = "tutti: who asks is not known: HTTP 401\n       set a token with --token or TUTTI_TOKEN\n"
	for name, tt := range map[string]struct {
		environment string
		args        []string
		code        int
		stdout      string
		stderr      string
	}{
		"of the environment":          {"s3cret", []string{"jobs"}, 0, "no jobs\n", ""},
		"of the environment, letters": {"s3cret", []string{"dead-letters", "list"}, 0, "no dead letters\n", ""},
		"with a line feed":            {"s3cret\n", []string{"jobs"}, 0, "no jobs\n", ""},
		"wrong":                       {"wrong", []string{"jobs"}, 1, "", rejected},
		"none":                        {"", []string{"jobs"}, 1, "", rejected},
		"of the flag":                 {"", []string{"jobs", "--token", "s3cret"}, 0, "no jobs\n", ""},
		"the flag wins":               {"wrong", []string{"jobs", "--token", "s3cret"}, 0, "no jobs\n", ""},
		"the flag wins, though wrong": {"s3cret", []string{"jobs", "--token", "wrong"}, 1, "", rejected},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TUTTI_TOKEN", tt.environment)
			t.Setenv("TUTTI_SERVER", url)
			code, stdout, stderr := call(t, tt.args...)
			if code != tt.code || stdout != tt.stdout || stderr != tt.stderr {
				t.Errorf("code %d, stdout %q, stderr %q", code, stdout, stderr)
			}
		})
	}
}

func TestRetryAll(t *testing.T) {
	t.Parallel()
	const answer = `{"successful":true,"requestId":"r","jobId":"j"}`
	for name, tt := range map[string]struct {
		args   []string
		stdout string
	}{
		"all": {nil, "accepted  retry of dead letters\nrequest   r\njob       j\nfollow    tutti jobs show j --watch\n"},
		"of a repository and a reason": {
			[]string{"--repository", "a", "--organization", "S1", "--reason", "rejected"},
			"accepted  retry of a S1 rejected dead letters\nrequest   r\njob       j\nfollow    tutti jobs show j --watch\n",
		},
		"as JSON": {[]string{"-o", "json"}, answer + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"dead-letters", "retry", "--all", "--server", server(t, http.StatusAccepted, answer)}, tt.args...)
			code, stdout, stderr := call(t, args...)
			if code != 0 || stdout != tt.stdout || stderr != "" {
				t.Errorf("code %d, stdout %q, stderr %q", code, stdout, stderr)
			}
		})
	}
}

// TestLettersListSaysWhy: the engine's kind of error where there is one, else the hint.
func TestLettersListSaysWhy(t *testing.T) {
	t.Parallel()
	page, err := json.Marshal(map[string]any{"deadLetters": []map[string]any{
		{"id": "1", "reason": "rejected", "engineType": "document_parsing_exception", "hint": "fix the record"},
		{"id": "2", "reason": "upstream_error", "hint": "check the repository"},
		{"id": "3", "reason": "crash_loop"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := call(t, "dead-letters", "list", "--server", server(t, http.StatusOK, string(page)))
	lines := strings.Split(stdout, "\n")
	if code != 0 || stderr != "" || len(lines) != 5 {
		t.Fatalf("code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	for i, end := range []string{" DETAIL", " document_parsing_exception", " check the repository", " -"} {
		if !strings.HasSuffix(lines[i], end) {
			t.Errorf("line %d is %q, want %q at its end", i, lines[i], end)
		}
	}
}

func TestCataloguesThatThereAreNot(t *testing.T) {
	t.Parallel()
	const none = `{"catalogCount":0,"mode":"multiple","status":"healthy","sqonSchemaPath":"/introspection/sqon","catalogs":{}}`
	url := server(t, http.StatusOK, none)
	for name, tt := range map[string]struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		"list":          {[]string{"list"}, 0, "no catalogues\n", ""},
		"list, as JSON": {[]string{"list", "-o", "json"}, 0, none + "\n", ""},
		"show":          {[]string{"show", "a"}, 1, "", "tutti: catalogue not found\n"},
		"show nothing":  {[]string{"show"}, 1, "", "tutti: pass the id of one catalogue\n       see tutti catalogues show --help\n"},
		"show two":      {[]string{"show", "a", "b"}, 1, "", "tutti: \"b\" is one argument too many: pass the id of one catalogue\n       see tutti catalogues show --help\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"catalogues"}, tt.args...)
			code, stdout, stderr := call(t, append(args, "--server", url)...)
			if code != tt.code || stdout != tt.stdout || stderr != tt.stderr {
				t.Errorf("code %d, stdout %q, stderr %q", code, stdout, stderr)
			}
		})
	}
}

// TestDropPrevious: the command says what it has deleted, which the server's response, without a body, does not.
func TestDropPrevious(t *testing.T) {
	t.Parallel()
	url := server(t, http.StatusNoContent, "")
	for format, want := range map[string]string{
		"text": "deleted the index of song.a from before its last rebuild\n",
		"json": "{\"previousDropped\":true,\"repository\":\"song.a\"}\n",
	} {
		if code, stdout, stderr := call(t, "index", "song.a", "--drop-previous", "--server", url, "-o", format); code != 0 || stdout != want || stderr != "" {
			t.Errorf("%s: code %d, stdout %q, stderr %q", format, code, stdout, stderr)
		}
	}
}
