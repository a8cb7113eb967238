package ingest_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"tutti/ingest"
)

// TestUnknownMembersAreLogged: a misspelt member is logged once per format, whichever way the event comes, without its value.
func TestUnknownMembersAreLogged(t *testing.T) {
	var log bytes.Buffer
	w := newWorld(t, func(c *ingest.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	const misspelt = `{"repositoryCode":"song.ca","studyId":"S","analysisId":"A","removeAnalyses":"secret"}`
	for range 2 {
		if _, err := w.service.Notify(t.Context(), "song.ca", []byte(misspelt), "", "r"); err != nil {
			t.Fatal(err)
		}
	}
	for _, format := range []string{"format=maestro", "format=song"} {
		if n := strings.Count(log.String(), format); n != map[string]int{"format=maestro": 1}[format] {
			t.Errorf("%d lines with %s: %s", n, format, &log)
		}
	}
	song := strings.Replace(misspelt, `"repositoryCode":"song.ca",`, "", 1)
	feed := newFeed(t, w, ingest.FeedConfig{Repositories: []string{"song.ca"}})
	if err := feed.Handle(t.Context(), messagesOf(misspelt, song, song)); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "member=removeAnalyses"); n != 2 || strings.Contains(log.String(), "secret") {
		t.Errorf("%d lines: %s", n, &log)
	}
}
