package check_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tutti/internal/app/check"
	"tutti/internal/tools/testkit"
)

// TestDeclared: check says whether a repository declares types, why not, and which fields it declares with several.
func TestDeclared(t *testing.T) {
	t.Parallel()
	const differing = `warn: declares several types for experiment.n: integer (a:1), number (a:2); indexed as double -> ` +
		`declare one type, or describe the field in a mapping file`
	for status, want := range map[int]string{
		0:   differing,
		401: "warn: declares no types of fields (GET schemas was answered with status 401)",
		403: "warn: declares no types of fields (GET schemas was answered with status 403)",
		404: "warn: declares no types of fields (GET schemas was answered with status 404)",
		400: "warn: declares no types of fields (GET schemas was answered with status 400)",
		405: "warn: declares no types of fields (GET schemas was answered with status 405)",
		500: "fail: what it declares about the types of fields: ",
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			s := song(t, testkit.SongConfig{}, "S1")
			for _, as := range []string{"integer", "number"} {
				s.Register("a", `{"properties":{"experiment":{"properties":{"n":{"type":"`+as+`"}}}}}`)
			}
			if status != 0 {
				s.Fail(testkit.Fault{Path: regexp.MustCompile("/schemas"), Status: status})
			}
			cfg := parse(t, "dataDir: "+t.TempDir()+"\nrepositories:\n  - {code: s, type: song, url: \""+s.URL()+"\", indexName: s}\n")
			lines := of(check.Run(t.Context(), cfg, check.Options{}), "repository s")
			if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, want) }) {
				t.Errorf("%s is not in\n%s", want, strings.Join(lines, "\n"))
			}
		})
	}
}

// TestDeclaredByTheStore: what the analysis types of the built-in repository declare is read from the store, while tutti has it open or not.
func TestDeclaredByTheStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := builtInConfig(t, dir, "")
	if types, err := check.Declared(t.Context(), cfg, cfg.Repositories[0], "dev"); err != nil || types.Len() != 0 {
		t.Errorf("without a store: %d types, %v", types.Len(), err)
	}
	s, end := openStore(t, dir)
	execute(t, s, "INSERT INTO analysis_type_name (name, latest) VALUES ('t', 2)")
	for i, as := range []string{"integer", "number"} {
		execute(t, s, fmt.Sprintf(`INSERT INTO analysis_type (name, version, created_at, options, schema) VALUES ('t', %d, 1, '{}', '{"properties":{"experiment":{"properties":{"n":{"type":"%s"}}}}}')`, i+1, as))
	}
	for _, open := range []bool{true, false} {
		types, err := check.Declared(t.Context(), cfg, cfg.Repositories[0], "dev")
		if n, _ := types.Lookup("experiment.n"); err != nil || n.String() != "integer (t:1), number (t:2); indexed as double" {
			t.Errorf("open %t: %s, %v", open, n, err)
		}
		if open {
			end()
		}
	}
}
