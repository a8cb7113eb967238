package mappingfile_test

import (
	"os"
	"strings"
	"testing"

	"tutti/internal/index/mapping"
)

// TestGuide: the example of the guide makes what the guide says of it.
func TestGuide(t *testing.T) {
	guide, err := os.ReadFile("../../../deploy/docs/indexing.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(guide), "\n## Mapping files\n")
	_, example, _ := strings.Cut(section, "```json\n")
	example, _, found := strings.Cut(example, "```")
	if !found {
		t.Fatal("the guide has no example")
	}
	f := parse(t, example)
	tree, err := f.Fields(mapping.Song(), mapping.NewFieldsReject)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]mapping.Type{
		"experiment.age": mapping.Long, "samples": mapping.Nested, "samples.collected": mapping.Date, "samples.sampleId": mapping.Keyword,
	} {
		if got := tree.Lookup(path); got == nil || got.Type != want {
			t.Errorf("%s is %+v, want %s", path, got, want)
		}
	}
	if f.Settings["index.number_of_shards"] != 2.0 || len(f.Unused) > 0 {
		t.Errorf("the settings are %v, unused %v", f.Settings, f.Unused)
	}
}
