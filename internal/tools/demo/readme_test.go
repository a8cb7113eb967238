package demo_test

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"tutti/internal/tools/testkit"
)

// TestFirstSearch: the README's first search on the demo has the answer that the README shows.
func TestFirstSearch(t *testing.T) {
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)```console\n\\$ curl -s http://127.0.0.1:8080(/\\S+) -H 'Content-Type: application/json' \\\\\n    -d '([^']+)'\n(.*?)\n```").FindStringSubmatch(string(readme))
	if shown == nil {
		t.Fatal("the README shows no first search")
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: testkit.HangLimit}
	resp, err := client.Post(started(t)+shown[1], "application/json", strings.NewReader(shown[2]))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || strings.TrimSpace(string(answer)) != shown[3] {
		t.Errorf("%s, %v: %s", resp.Status, err, answer)
	}
}
