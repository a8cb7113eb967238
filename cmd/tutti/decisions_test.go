package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDecisions: each decision record answers the same five questions on one page, is in the list of them, and names only files and folders
// that exist.
func TestDecisions(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	folder := filepath.Join(root, "deploy", "docs", "decisions")
	pages, err := filepath.Glob(filepath.Join(folder, "*.md"))
	if err != nil || len(pages) < 12 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	list, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(page)
		for _, path := range regexp.MustCompile("`((?:cmd|consumers|deploy|findings|http|ingest|internal|schemas)/[a-zA-Z0-9/._-]+)`").FindAllSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(root, string(path[1]))); err != nil {
				t.Errorf("%s names %s: %v", name, path[1], err)
			}
		}
		if name == "README.md" {
			continue
		}
		if lines := bytes.Count(text, []byte("\n")); lines > 60 {
			t.Errorf("%s has %d lines, which is more than a page (60)", name, lines)
		}
		at := 0
		for _, part := range []string{"**Question.**", "**Decision.**", "**Tried and measured", "**Cost.**", "**Decide anew**"} {
			i := strings.Index(string(text[at:]), part)
			if i < 0 {
				t.Errorf("%s has no %s in its place", name, part)
				continue
			}
			at += i
		}
		if !bytes.Contains(list, []byte("("+name+")")) {
			t.Errorf("the list of decisions lacks %s", name)
		}
	}
}
