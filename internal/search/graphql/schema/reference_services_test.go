//go:build services

package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/search/catalogue/definition"
	"tutti/internal/search/graphql/schema"
)

// ask runs graphql-js, the reference implementation.
func ask(t *testing.T, question, answer any) {
	t.Helper()
	modules := os.Getenv("TUTTI_TEST_GRAPHQL_JS")
	if modules == "" {
		t.Fatal("TUTTI_TEST_GRAPHQL_JS is not set: eval \"$(deploy/local/graphql-js | sed 's/^/export /')\"")
	}
	in, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join("testdata", "reference.cjs"))
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if err := json.Unmarshal(out, answer); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// TestReference: graphql-js accepts the text, and the schema that a client builds from introspection is the same.
func TestReference(t *testing.T) {
	var hello struct{ Version, Query string }
	ask(t, map[string]any{}, &hello)
	if !strings.HasPrefix(hello.Version, "16.") || !strings.Contains(hello.Query, "isRepeatable") || !strings.Contains(hello.Query, "specifiedByURL") {
		t.Fatalf("graphql-js %s asks %s", hello.Version, hello.Query)
	}
	described := []definition.ExtendedField{
		{FieldName: "studyId", Description: "The \"study\" of it,\n  C:\\path\t\u0001 – 日本 🧬 \"\"\" #\n\n", IsArray: new(true)},
	}
	network := schema.Options{Network: true, Remote: map[string]string{"theirs": "Aggregations"}}
	for _, tt := range []struct {
		name       string
		definition definition.Definition
		mapping    string
		options    schema.Options
	}{
		{"song", definition.Definition{Extended: described}, file(t, "song.json"), network},
		{"lyric", definition.Definition{DocumentType: "record", NestingPrefix: "data"}, lyric(t), schema.Options{}},
		{"deep", definition.Definition{DocumentType: "Query"}, deep, network},
		{"odd", definition.Definition{DocumentType: "odd type"}, odd, network},
		{"types", definition.Definition{DocumentType: "Subscription", Extended: isArray("list", "people")}, everyType(), schema.Options{}},
		{"empty", definition.Definition{DocumentType: "hasValidConfig"}, empties, schema.Options{}},
		{"many", definition.Definition{}, manyFields(t, 5000), schema.Options{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := built(t, tt.definition, tt.mapping, tt.options)
			var answer struct {
				Text, Introspection string
				Faults, Directives  []string
			}
			ask(t, map[string]any{"text": s.Text, "introspection": json.RawMessage(meta(t, s, hello.Query, nil))}, &answer)
			if len(answer.Faults) > 0 {
				t.Errorf("faults: %q", answer.Faults)
			}
			if diff := cmp.Diff(strings.Split(answer.Text, "\n"), strings.Split(answer.Introspection, "\n")); diff != "" {
				t.Errorf("(-text +introspection):\n%s", diff)
			}
			want := []string{
				"deprecated FIELD_DEFINITION ARGUMENT_DEFINITION INPUT_FIELD_DEFINITION ENUM_VALUE", "include FIELD FRAGMENT_SPREAD INLINE_FRAGMENT",
				"skip FIELD FRAGMENT_SPREAD INLINE_FRAGMENT", "specifiedBy SCALAR",
			}
			if diff := cmp.Diff(want, answer.Directives); diff != "" {
				t.Errorf("directives (-want +got):\n%s", diff)
			}
			if node := fmt.Sprintf("\ntype %sNode implements Node {\n", s.Document); !strings.Contains(answer.Text, node) {
				t.Errorf("%q is not printed", node)
			}
		})
	}
}
