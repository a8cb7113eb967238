package song_test

import (
	"testing"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/tools/testkit/dataset"
	"tutti/internal/upstream/song"
)

// TestFields: the fields of each kind of document are those that its documents have.
func TestFields(t *testing.T) {
	a := dataset.GenerateAnalyses(1, "PANC-CA", 1)[0]
	rec := core.Record{
		ID: a.ID, Organization: a.Study, State: gjson.GetBytes(a.Body, "analysisState").String(), Indexable: true, Body: a.Body,
	}
	if rec.State == "" {
		t.Fatalf("no state in %s", a.Body)
	}
	for _, kind := range song.Type().Documents {
		check := func(id string, document []byte) error {
			want := map[string]string{kind.Fields.ID: rec.ID, kind.Fields.Organization: rec.Organization, kind.Fields.State: rec.State}
			if kind.Fields.Document != "" {
				want[kind.Fields.Document] = id
			}
			for path, value := range want {
				if got := gjson.GetBytes(document, path).String(); got != value {
					t.Errorf("%s: %s is %q, want %q: %s", kind.Name, path, got, value, document)
				}
			}
			return nil
		}
		var err error
		if kind.Split != nil {
			err = kind.Split(rec, []byte("[]"), check)
		} else {
			err = check(rec.ID, kind.Append(nil, rec, []byte("[]")))
		}
		if err != nil {
			t.Errorf("%s: %v", kind.Name, err)
		}
	}
}
