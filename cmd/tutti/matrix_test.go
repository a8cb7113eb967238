package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMatrix: each record of deploy/local/matrix.tsv is one of the rows of deploy/local/matrix, with its version, and the table of
// deploy/docs/engines.md is what that script writes from the records.
func TestMatrix(t *testing.T) {
	t.Parallel()
	read := func(path ...string) string {
		t.Helper()
		content, err := os.ReadFile(filepath.Join(path...))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	deploy := filepath.Join("..", "..", "deploy")
	script, records, guide := read(deploy, "local", "matrix"), read(deploy, "local", "matrix.tsv"), read(deploy, "docs", "engines.md")
	_, rows, _ := strings.Cut(script, "\nrows=\"\n")
	rows, _, found := strings.Cut(rows, "\n\"\n")
	if !found {
		t.Fatal("the script has no list of rows")
	}
	versions := map[string]string{}
	for line := range strings.Lines(rows) {
		row := strings.Fields(line)
		if len(row) != 5 || versions[row[0]] != "" {
			t.Fatalf("the row %q", line)
		}
		versions[row[0]] = row[4]
	}
	var names []string
	for line := range strings.Lines(records) {
		record := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(record) != 5 || !regexp.MustCompile(`^[0-9]+$`).MatchString(record[3]) || !regexp.MustCompile(`^[0-9a-f]{12}$`).MatchString(record[4]) {
			t.Errorf("the record %q is not: row, version, date, seconds, sum", line)
			continue
		}
		names = append(names, record[0])
		if want, known := versions[record[0]]; !known || want != "-" && want != record[1] || record[1] == "" {
			t.Errorf("the record %q: the script's row has version %q", line, want)
		}
		if _, err := time.Parse(time.DateOnly, record[2]); err != nil {
			t.Errorf("the record %q: %v", line, err)
		}
	}
	if sorted := slices.Compact(slices.Sorted(slices.Values(names))); !slices.Equal(sorted, names) {
		t.Errorf("the records %q are not in order, or not one for each row", names)
	}
	dir := t.TempDir()
	for path, content := range map[string]string{"local/matrix": script, "local/matrix.tsv": records, "docs/engines.md": guide} {
		path = filepath.Join(dir, "deploy", path)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "bash", filepath.Join(dir, "deploy", "local", "matrix"), "--table").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if read(dir, "deploy", "docs", "engines.md") != guide {
		t.Error("deploy/docs/engines.md has another table than deploy/local/matrix --table writes: run it")
	}
}
