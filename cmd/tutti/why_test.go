package main

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// TestWhy: the text has a line for each part, and ends with the next step; JSON is the server's answer.
func TestWhy(t *testing.T) {
	t.Parallel()
	const answer = `{"repository":"song.ca","organization":"S1","id":"A1",` +
		`"upstream":{"status":"excluded","tookMillis":3,"state":"PUBLISHED","excludedBy":{"list":"donors","id":"DO1"},"sha256":"ab12","bytes":1234},` +
		`"index":{"status":"present","tookMillis":1,"alias":"analyses","comparison":"differs","documents":[` +
		`{"id":"A1","stored":true,"expected":false,"version":17,"physicalIndex":"analyses-1","comparison":"differs"},` +
		`{"id":"A2","stored":false,"expected":true,"comparison":"differs"}]},` +
		`"queue":{"status":"pending","tookMillis":1,"batches":2,"paused":"the index is closed",` +
		`"request":{"kind":"index","cause":"kafka","attempts":3,"receivedAt":"2026-05-04T12:00:00Z"}},` +
		`"jobs":{"status":"present","tookMillis":1,"inProgress":[{"id":"J2","scope":"repository","state":"running","queuedAt":"2026-05-04T12:00:00Z"}],` +
		`"lastEnded":{"id":"J1","scope":"organization","state":"partial","organizationState":"partial","queuedAt":"2026-05-04T12:00:00Z"}},` +
		`"deadLetters":{"status":"error","tookMillis":5000,"error":"no answer within 5s","letters":[{"id":"L1","recordId":"A1","reason":"rejected","attempts":2,"lastAt":"2026-05-04T12:00:00Z"}]},` +
		`"next":"wait"}`
	url := server(t, http.StatusOK, answer)
	code, stdout, stderr := call(t, "why", "song.ca", "S1", "A1", "--server", url)
	if code != 0 || stderr != "" {
		t.Fatalf("code %d, stderr %q", code, stderr)
	}
	for _, want := range []string{
		`record +song.ca / S1 / A1`, `upstream +excluded, PUBLISHED, by DO1 in exclude.donors, 1,234 bytes, sha256 ab12, 3 ms`,
		`index +present, alias analyses, differs from the repository, 1 ms`, `document +A1, differs, version 17, in analyses-1, not of the record any more`,
		`document +A2, not stored`, `queue +pending, index, cause kafka, 3 attempts, since \S+, 2 batches that may name it, 1 ms`,
		`paused +the index is closed`, `in progress +J2, repository, running, `, `last ended +J1, organization, partial, `,
		`dead letters +error, no answer within 5s, 5000 ms`, `dead letter +L1, rejected, 2 attempts, `, `next +wait`,
	} {
		if !regexp.MustCompile(`(?m)^` + want).MatchString(stdout) {
			t.Errorf("no line %q in\n%s", want, stdout)
		}
	}
	if code, stdout, _ := call(t, "why", "song.ca", "S1", "A1", "-o", "json", "--server", url); code != 0 || strings.TrimSpace(stdout) != answer {
		t.Errorf("code %d, %s", code, stdout)
	}
	if code, _, stderr := call(t, "why", "song.ca", "S1"); code != 1 || !strings.Contains(stderr, "pass a repository, an organization and the id of a record") {
		t.Errorf("code %d, stderr %q", code, stderr)
	}
}
