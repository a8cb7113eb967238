package definition_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"tutti/internal/core"
	"tutti/internal/search/catalogue/definition"
)

// FuzzLoad: for any folder content nothing is omitted, IDs are unique and valid, stored values are JSON, messages can be
// displayed, and an invalid rule denies everyone.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(sound), []byte(`{"field": "studyId", "scope": "{value}.READ", "public": {}}`))
	f.Add([]byte("\uFEFF"+withID("neighbour")), []byte(`{"field": "a", "scope": "{value}", "public": {"op":"and","content":[]}}`))
	f.Add([]byte(withID("jobs")), []byte(`{}`))
	f.Add([]byte(`{"index": "a", "documentType": "1-2", "extended": [{"field": "a", "displayValues": {"a": [1e5, null]}}, null]}`), []byte(`null`))
	f.Add([]byte(`{"facets": {"aggregations": [{"active": 1}]}, "network": {"remoteNodes": [{}]}, "a": {"a": 1, "a": 2}}`), []byte(`{"public": 1`))
	f.Add([]byte("{\"a\": \"\xFF\"}"), []byte("\xFF\xFE"))
	f.Fuzz(func(t *testing.T, base, access []byte) {
		opts := definition.Options{Reserved: []string{"jobs"}}
		set := load(t, files{
			"fuzzed/base.json": string(base), "fuzzed/extended.json": `{"extended": [{"fieldName": "a"}]}`,
			"fuzzed/access.json": string(access), "neighbour/base.json": sound,
		}, opts)
		if len(set.Definitions) != 2 || set.Definitions[0].ID == set.Definitions[1].ID {
			t.Fatalf("%v", ids(set))
		}
		for _, d := range set.Definitions {
			if err := core.ValidID("id", d.ID); err != nil {
				t.Error(err)
			}
			if d.Err != nil {
				displayable(t, d.Err.Message)
				displayable(t, d.Err.Hint)
			}
			for _, w := range d.Warnings {
				displayable(t, w)
			}
			if d.Folder == "fuzzed" {
				checkFuzzed(t, d)
			}
		}
	})
}

func checkFuzzed(t *testing.T, d definition.Definition) {
	t.Helper()
	if d.Access == nil {
		t.Error("the rule is lost")
	}
	if d.Err == nil && (d.DocumentType == "" || d.Index == "" || d.Access.Field == "" || !strings.Contains(d.Access.Scope, "{value}")) {
		t.Errorf("no fault, but %+v", d)
	}
	for _, raw := range []json.RawMessage{d.Facets, d.Table, d.Matchbox, d.Downloads, d.Charts, d.Network} {
		if raw != nil && !json.Valid(raw) {
			t.Errorf("not JSON: %s", raw)
		}
	}
	if d.MaxAliases < 0 || d.MaxDepth < 0 {
		t.Errorf("%+v", d)
	}
}

func displayable(t *testing.T, text string) {
	t.Helper()
	if text == "" || len(text) > 2000 || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		t.Errorf("%q cannot be displayed", text)
	}
}
