package song_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/tidwall/sjson"

	"tutti/internal/base/equality"
	"tutti/internal/core"
	"tutti/internal/upstream/song"
)

// TestCaseOfARealSong: an analysis as a real Song 5.2 returns it by its id and in its list becomes the same documents, of whatever kind; one
// with another order of experiment.steps does not.
func TestCaseOfARealSong(t *testing.T) {
	data, err := os.ReadFile("testdata/files-order.json")
	if err != nil {
		t.Fatal(err)
	}
	var given struct {
		Single json.RawMessage
		List   struct{ Analyses []json.RawMessage }
	}
	if err := json.Unmarshal(data, &given); err != nil || len(given.List.Analyses) != 1 {
		t.Fatal(err, len(given.List.Analyses))
	}
	listed := given.List.Analyses[0]
	other, err := sjson.SetRawBytes(given.Single, "experiment.steps", []byte(`["b","a"]`))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range song.Type().Documents {
		made := func(body []byte) map[string][]byte {
			t.Helper()
			rec := core.Record{ID: "00000000-0000-4000-8000-000000000001", Organization: "S1", State: "PUBLISHED", Indexable: true, Body: body}
			if kind.Split == nil {
				return map[string][]byte{rec.ID: kind.Append(nil, rec, []byte(`[]`))}
			}
			all := map[string][]byte{}
			err := kind.Split(rec, []byte(`[]`), func(id string, document []byte) error {
				all[id] = append([]byte(nil), document...)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		rules := equality.New(kind.Fields.Unordered)
		single, list, changed := made(given.Single), made(listed), made(other)
		if len(single) == 0 || len(single) != len(list) {
			t.Errorf("%s: %d and %d documents", kind.Name, len(single), len(list))
		}
		for id, document := range single {
			if !rules.Equal(document, list[id]) {
				t.Errorf("%s: %s\n%s", kind.Name, document, list[id])
			}
			if rules.Equal(document, changed[id]) {
				t.Errorf("%s: another order of experiment.steps makes no difference: %s", kind.Name, document)
			}
		}
	}
}
