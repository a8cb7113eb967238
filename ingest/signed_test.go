package ingest_test

import (
	"testing"

	"tutti/ingest"
)

// TestSigned: a repository with a secret asks for signatures, others and unknown ones do not.
func TestSigned(t *testing.T) {
	s := newService(t, &queueFake{}, ingest.Config{Sources: map[string]ingest.Source{"song.ca": {WebhookSecret: "s3cret"}}})
	for repository, want := range map[string]bool{"song.ca": true, "song.us": false, "SONG.CA": false, "no-such": false, "": false} {
		if got := s.Signed(repository); got != want {
			t.Errorf("%q: got %v", repository, got)
		}
	}
}
