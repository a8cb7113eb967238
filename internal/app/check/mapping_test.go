package check_test

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"tutti/internal/app/check"
	"tutti/internal/tools/testkit"
)

// TestMappingFiles: check says whether a mapping file would be accepted and why not, with the whole path of the field, or that only the first
// creation will tell; what of the file is not used; and that dynamic does not let the engine add fields. What the hints advise ends the findings.
func TestMappingFiles(t *testing.T) {
	t.Parallel()
	upstream := song(t, testkit.SongConfig{}, "S1")
	const (
		members  = `"mappings":{"properties":{"a":{"properties":{"b":{"type":"keyword"}}}}}}`
		plain    = `{` + members
		wrong    = `{"mappings":{"properties":{"a":{"properties":{"b":{"type":"keywrd"}}}}}}`
		guessing = `{"mappings":{"dynamic":true,"properties":{"a":{"dynamic":"runtime","properties":{"b":{"type":"keyword"}}}}}}`
		template = `{"index_patterns":["x-*"],"priority":7,"template":` + plain + `}`
		replicas = `{"settings":{"index.refresh_interval":"5s","index.mapping.total_fields.limit":9},"aliases":{"x":{}},` + members
		simulate = "POST /_index_template/_simulate"
		untried  = "warn: the search engine does not let this user try the mapping file: only the first creation of an index will tell whether it takes it" +
			" -> grant the user's role the privilege manage_index_templates on the cluster"
		guesses = "warn: dynamic of (mapping), a would let the engine add fields by its own rules; tutti adds them by its rules, as with newFields: add" +
			" -> set newFields of the repository"
		refused = `{"error":{"type":"illegal_argument_exception","reason":"composable template [s] template after composition is invalid","caused_by":` +
			`{"type":"mapper_parsing_exception","reason":"No handler for type [keywrd] declared on field [b]"}},"status":400}`
	)
	accepted, denied := routes{simulate: {200, `{}`}}, routes{simulate: {403, `{"error":{"type":"security_exception"}}`}}
	for name, tt := range map[string]struct {
		file, members string
		engine        routes
		want          []string
	}{
		"accepted":               {plain, "", accepted, []string{"ok: *mapping.json is accepted"}},
		"refused":                {wrong, "", routes{simulate: {400, refused}}, []string{`fail: the search engine refuses the mapping file: the field "a.b": *No handler for type [keywrd]* -> fix the mapping file`}},
		"no privilege":           {plain, "", denied, []string{untried}},
		"guessing":               {guessing, "", accepted, []string{"ok: *", guesses}},
		"guessing, decided":      {guessing, "newFields: add, ", accepted, []string{"ok: *"}},
		"not used":               {template, "", accepted, []string{"ok: *", "warn: *mapping.json has members that are not used: index_patterns, priority"}},
		"embedded":               {plain, "", nil, []string{"ok: *mapping.json is accepted"}},
		"embedded, refused":      {wrong, "", nil, []string{"fail: *a.b*keywrd* -> *"}},
		"embedded, guessing":     {guessing, "", nil, []string{"ok: *", guesses}},
		"embedded, not used":     {replicas, "", nil, []string{"ok: *", "warn: *mapping.json has members that are not used: the alias x, the setting index.refresh_interval"}},
		"embedded, no such file": {"", "", nil, []string{"fail: *"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, index := t.TempDir(), ""
			file := filepath.Join(dir, "mapping.json")
			if err := os.WriteFile(file, []byte(plain), 0o600); err != nil {
				t.Fatal(err)
			}
			if tt.engine != nil {
				engine := maps.Clone(tt.engine) // other cases have it too
				engine["GET /a/_alias"], engine["POST /a/_count"] = routes{}[""], routes{}[""]
				server := httptest.NewServer(healthy(engine))
				defer server.Close()
				index = fmt.Sprintf("url: %q, username: elastic, password: s3cret", server.URL)
			}
			cfg := parse(t, fmt.Sprintf("dataDir: %q\nindex: {%s}\nrepositories: [{code: a, type: song, indexName: a, mappingFile: %q, %surl: %q}]",
				dir, index, file, tt.members, upstream.URL()))
			if err := os.WriteFile(file, []byte(tt.file), 0o600); err != nil {
				t.Fatal(err)
			}
			if tt.file == "" {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			}
			wantLines(t, of(check.Run(t.Context(), cfg, check.Options{}), "mapping of a"), tt.want...)
		})
	}
}
