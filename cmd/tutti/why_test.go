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
		`"upstream":{"status":"excluded","tookMillis":3,"state":"PUBLISHED","excludedBy":{"list":"donors","id":"DO1"},"reason":"is of another entity","partOf":"DO2","sha256":"ab12","bytes":1234},` +
		`"index":{"status":"present","tookMillis":1,"alias":"analyses","comparison":"differs","documents":[` +
		`{"id":"A1","stored":true,"expected":false,"version":17,"physicalIndex":"analyses-1","state":"PUBLISHED","sha256":"cd34","bytes":1200,"comparison":"differs","content":"differs"},` +
		`{"id":"A2","stored":false,"expected":true,"expectedSha256":"ef56","comparison":"differs","content":"differs"},` +
		`{"id":"A3","stored":true,"expected":true,"version":18,"sha256":"ab12","bytes":1234,"expectedSha256":"ab12","comparison":"differs","content":"equal"},` +
		`{"id":"A4","stored":true,"expected":true,"version":19,"sha256":"ab13","bytes":1,"expectedSha256":"ab14","comparison":"differs","content":"differs"}]},` +
		`"queue":{"status":"pending","tookMillis":1,"batches":2,"paused":"the index is closed",` +
		`"request":{"kind":"index","cause":"kafka","attempts":3,"receivedAt":"2026-05-04T12:00:00Z"}},` +
		`"jobs":{"status":"present","tookMillis":1,"inProgress":[{"id":"J2","scope":"repository","state":"running","queuedAt":"2026-05-04T12:00:00Z"},{"id":"J3","scope":"ids","state":"running","outcome":"queued","queuedAt":"2026-05-04T12:00:00Z"}],` +
		`"lastEnded":{"id":"J1","scope":"organization","state":"partial","organizationState":"partial","queuedAt":"2026-05-04T12:00:00Z"}},` +
		`"deadLetters":{"status":"unknown","tookMillis":2000,"error":"no answer within 2s","letters":[{"id":"L1","recordId":"A1","reason":"rejected","attempts":2,"lastAt":"2026-05-04T12:00:00Z"}]},` +
		`"next":"wait"}`
	url := server(t, http.StatusOK, answer)
	code, stdout, stderr := call(t, "why", "song.ca", "S1", "A1", "--server", url)
	if code != 0 || stderr != "" {
		t.Fatalf("code %d, stderr %q", code, stderr)
	}
	for _, want := range []string{
		`record +song.ca / S1 / A1`, `upstream +excluded, PUBLISHED, by DO1 in exclude.donors, is of another entity, part of DO2, 1,234 bytes, sha256 ab12, 3 ms`,
		`index +present, alias analyses, differs from the repository, 1 ms`, `document +A1, differs, PUBLISHED, 1,200 bytes, sha256 cd34, version 17, in analyses-1, not of the record any more$`,
		`document +A2, not stored, expected sha256 ef56$`, `document +A3, differs in the repositories block only, 1,234 bytes, sha256 ab12, version 18$`,
		`document +A4, differs, 1 bytes, sha256 ab13, version 19, expected sha256 ab14$`, `in progress +J3, list of ids, this one queued, running, queued `, `queue +pending, index, cause kafka, 3 attempts, since \S+, 2 batches that may name it, 1 ms`,
		`paused +the index is closed`, `in progress +J2, repository, running, `, `last ended +J1, organization, partial, `,
		`dead letters +unknown, no answer within 2s, 2000 ms`, `dead letter +L1, rejected, 2 attempts, `, `next +wait`,
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
