package mappingfile_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
	"tutti/internal/index/mappingfile"
)

func parse(t *testing.T, text string) mappingfile.File {
	t.Helper()
	f, err := mappingfile.Parse(json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func read(t *testing.T, name string) mappingfile.File {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(raw))
}

// TestForms reads the files that portals keep: their fields and settings count, and the rest is named.
func TestForms(t *testing.T) {
	for name, c := range map[string]struct {
		fields   map[string]mapping.Type
		settings map[string]any
		unused   []string
	}{
		"composable-template": {
			map[string]mapping.Type{"code": "keyword", "persons": "nested", "persons.age": "integer", "persons.sex": "keyword"},
			map[string]any{"index.number_of_shards": 2.0, "index.max_result_window": 50000.0},
			[]string{"index_patterns", "priority", "version", "template.aliases"},
		},
		"component-template": {map[string]mapping.Type{"code": "keyword"}, map[string]any{}, nil},
		"type-level": {
			map[string]mapping.Type{"code": "keyword", "size": "long"},
			map[string]any{"index.number_of_shards": 1.0},
			[]string{`the type level "portal_doc"`},
		},
		"partial": {map[string]mapping.Type{"experiment.age": "long"}, map[string]any{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := read(t, name)
			tree, err := f.Fields(mapping.Song(), "")
			if err != nil {
				t.Fatal(err)
			}
			for path, want := range c.fields {
				if got := tree.Lookup(path); got == nil || got.Type != want {
					t.Errorf("%s is %+v, want %s", path, got, want)
				}
			}
			for path, own := range mapping.Song().All() {
				if got := tree.Lookup(path); got == nil || got.Type != own.Type {
					t.Errorf("tutti's own %s is %+v", path, got)
				}
			}
			if tree.Dynamic != mapping.DynamicStrict {
				t.Errorf("dynamic is %q", tree.Dynamic)
			}
			if diff := cmp.Diff(c.settings, f.Settings); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.unused, f.Unused); diff != "" {
				t.Error(diff)
			}
		})
	}
	for text, unused := range map[string]string{
		`{"order":1,"index_patterns":["a"],"settings":{},"mappings":{"_doc":{"properties":{}}},"aliases":{"x":{}}}`: `aliases index_patterns order the type level "_doc"`,
		`{"aliases":{"x":{}},"settings":{"a":1}}`:                    "",
		`{"dynamic_templates":[],"properties":{}}`:                   "dynamic_templates",
		`{"portal":{"dynamic":"strict","_meta":{},"properties":{}}}`: `the type level "portal"`,
		`{"properties":{"settings":{"type":"keyword"}}}`:             "",
	} {
		if got := strings.Join(parse(t, text).Unused, " "); got != unused {
			t.Errorf("%s: unused are %q, want %q", text, got, unused)
		}
	}
}

func TestInvalid(t *testing.T) {
	for text, want := range map[string]string{
		`{"propertiess":{}}`:                             `unknown member "propertiess"`,
		`{"mappings":{"properties":{},"x":{}}}`:          `unknown member "x"`,
		`{"properties":{},"settings":{}}`:                `unknown member "settings"`,
		`{"a":{"properties":{}},"b":{"properties":{}}}`:  `unknown member "a"`,
		`{"mappings":[]}`:                                "the mapping is not a JSON object",
		`{"template":[]}`:                                "template is not a JSON object",
		`{"mappings":{},"settings":[]}`:                  "settings of the mapping file is not a JSON object",
		`{"mappings":{},"aliases":[]}`:                   "aliases is not a JSON object",
		`{"properties":{"a":{"properties":{"b":5}}}}`:    `field "a.b" is not a JSON object`,
		`{"properties":{"a":{"type":5}}}`:                `field "a" has a type that is not a name`,
		`{"mappings":{"type":"nested","properties":{}}}`: "without a type",
	} {
		_, err := mappingfile.Parse(json.RawMessage(text))
		if core.CodeOf(err) != core.CodeInvalid || !strings.Contains(core.MessageOf(err), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if hint := core.HintOf(err); strings.HasPrefix(want, "unknown member") && hint != "fields belong below properties; one type level with properties below it is read" {
			t.Errorf("%s: the hint is %q", text, hint)
		}
	}
	for before, after := range map[string]string{ // what the hint advises
		`{"mappings":{"properties":{},"x":{}}}`:         `{"mappings":{"properties":{"x":{}}}}`,
		`{"a":{"properties":{}},"b":{"properties":{}}}`: `{"a":{"properties":{"b":{"properties":{}}}}}`,
	} {
		if _, err := mappingfile.Parse(json.RawMessage(before)); err == nil {
			t.Errorf("%s is valid", before)
		}
		if _, err := parse(t, after).Fields(mapping.Song(), ""); err != nil {
			t.Errorf("%s: %v", after, err)
		}
	}
}

// TestOverride: what the file names is as it says, all else as tutti makes it.
func TestOverride(t *testing.T) {
	own := mapping.Song()
	tree, err := parse(t, `{"_meta":{"a":1},"properties":{"studyId":{"type":"text"},"files":{"properties":{"fileSize":{"type":"double"},"more":{"type":"ip"}}},
		"samples":{"type":"object"},"samples.donor.age":{"type":"long"},"analysisType":{"type":"keyword"},"info":{"properties":{"x":{"type":"long"}}}}}`).Fields(own, "")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]mapping.Type{
		"studyId": "text", "files": "nested", "files.fileSize": "double", "files.more": "ip", "files.fileName": "keyword", "samples": "object",
		"samples.donor": "object", "samples.donor.age": "long", "samples.sampleId": "keyword", "analysisType": "keyword", "info": "object", "info.x": "long",
	} {
		if got := tree.Lookup(path); got == nil || got.Type != want {
			t.Errorf("%s is %+v, want %s", path, got, want)
		}
	}
	if f := tree.Lookup("studyId"); f.Params != nil {
		t.Errorf("studyId has parameters that the file does not give it: %v", f.Params)
	}
	if diff := cmp.Diff(mapping.Song(), own); diff != "" {
		t.Errorf("tutti's own fields have changed: %s", diff)
	}
}

// TestNewFields: the key wins over the dynamic of the file, at every level.
func TestNewFields(t *testing.T) {
	for _, c := range []struct{ file, key, dynamic, below, recorded, guessing string }{
		{``, "", "strict", "", "", ""},
		{``, "ignore", "false", "", "ignore", ""},
		{``, "reject", "strict", "", "reject", ""},
		{`{}`, "", "strict", "", "", ""},
		{`{"dynamic":"strict"}`, "", "strict", "", "", ""},
		{`{"dynamic":false}`, "", "false", "", "", ""},
		{`{"dynamic":"false"}`, "add", "strict", "", "", ""},
		{`{"dynamic":true}`, "", "strict", "", "", "(mapping)"},
		{`{"dynamic":"runtime","properties":{"a":{"dynamic":"true","properties":{}}}}`, "", "strict", "strict", "", "(mapping) a"},
		{`{"properties":{"a":{"dynamic":false,"properties":{}}}}`, "", "strict", "false", "", ""},
		{`{"properties":{"a":{"dynamic":false,"properties":{}}}}`, "reject", "strict", "strict", "reject", ""},
		{`{"dynamic":"strict"}`, "ignore", "false", "", "ignore", ""},
	} {
		var f mappingfile.File
		if c.file != "" {
			f = parse(t, c.file)
		}
		tree, err := f.Fields(nil, c.key)
		if err != nil {
			t.Fatal(err)
		}
		below := ""
		if a := tree.Lookup("a"); a != nil {
			below = a.Dynamic
		}
		got := []string{tree.Dynamic, below, tree.RecordedNewFields(), strings.Join(f.Guessing(), " ")}
		if diff := cmp.Diff([]string{c.dynamic, c.below, c.recorded, c.guessing}, got); diff != "" {
			t.Errorf("%s with %q: %s", c.file, c.key, diff)
		}
	}
}

// TestUpdate: an index that exists gets only what the configuration states.
func TestUpdate(t *testing.T) {
	for _, c := range []struct{ name, file, key, live, want string }{
		{"no file", ``, "", `{"dynamic":"strict","properties":{}}`, ""},
		{"an index of before", `{"properties":{"a":{"type":"long"}}}`, "", `{"properties":{"a":{"type":"long"}}}`, `{"properties":{"a":{"type":"long"}}}`},
		{"the engine guesses", `{"dynamic":true}`, "", `{"dynamic":"true"}`, ""},
		{"no type", `{"properties":{"a":{"properties":{"b":{"type":"long"}}}}}`, "", `{"properties":{"a":{"type":"nested"}}}`, `{"properties":{"a":{"properties":{"b":{"type":"long"}},"type":"nested"}}}`},
		{"dynamic as it is", `{"dynamic":false}`, "", `{"dynamic":"false"}`, ""},
		{"dynamic changes", `{"dynamic":false}`, "", `{"dynamic":"strict"}`, `{"dynamic":"false"}`},
		{"ignore", ``, "ignore", `{"dynamic":"strict"}`, `{"_meta":{"tutti":{"newFields":"ignore"}},"dynamic":"false"}`},
		{"reject", ``, "reject", `{"_meta":{"a":1},"dynamic":"strict"}`, `{"_meta":{"a":1,"tutti":{"newFields":"reject"}},"dynamic":"strict"}`},
		{"reject as it is", ``, "reject", `{"_meta":{"tutti":{"newFields":"reject"}},"dynamic":"strict"}`, ""},
		{"the key is gone", ``, "", `{"_meta":{"tutti":{"newFields":"ignore"}},"dynamic":"false"}`, `{"_meta":{"tutti":{"newFields":"add"}},"dynamic":"strict"}`},
		{"to add", ``, "add", `{"_meta":{"tutti":{"newFields":"reject"}},"dynamic":"strict"}`, `{"_meta":{"tutti":{"newFields":"add"}},"dynamic":"strict"}`},
		{"the file's own _meta", `{"_meta":{"b":2}}`, "reject", `{"_meta":{"a":1,"tutti":{"newFields":"reject"}},"dynamic":"strict"}`, `{"_meta":{"b":2,"tutti":{"newFields":"reject"}},"dynamic":"strict"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var f mappingfile.File
			if c.file != "" {
				f = parse(t, c.file)
			}
			live, err := mapping.Parse([]byte(c.live))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if update := f.Update(live, c.key); update != nil {
				raw, err := update.Render()
				if err != nil {
					t.Fatal(err)
				}
				got = string(raw)
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
