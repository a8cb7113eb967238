package plan_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/app/plan"
	"tutti/internal/core"
)

// served is a server without catalogues, whose repositories write to one index, which may be missing.
type served struct {
	index   string
	mapping string
}

func (s served) IDs(context.Context) ([]string, error) { return nil, nil }

func (s served) Fields(context.Context, string) (core.Catalogue, error) { return core.Catalogue{}, nil }

func (s served) Mapping(_ context.Context, index string) (json.RawMessage, error) {
	switch {
	case index != s.index:
		return nil, nil
	case s.mapping == "":
		return nil, core.WrapError(core.CodeIndexBlocked, "the index is missing", core.ErrIndexMissing)
	default:
		return json.RawMessage(s.mapping), nil
	}
}

// TestPlanOfNewCatalogue: a catalogue that a server does not serve yet is compared with the mapping of the index that the server has.
func TestPlanOfNewCatalogue(t *testing.T) {
	dir := t.TempDir()
	for name, body := range map[string]string{
		"base.json":     `{"catalogId":"lab","documentType":"analysis","esIndex":"analyses"}`,
		"extended.json": `{"extended":[{"fieldName":"age","type":"keyword"},{"fieldName":"studyId"}]}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	none, added := []plan.CatalogueDifference{}, []string{"the catalogue is added"}
	for name, c := range map[string]struct {
		served served
		want   plan.PlannedCatalogue
	}{
		"its index":     {served{"analyses", `{"properties":{"age":{"type":"long"},"studyId":{"type":"keyword"}}}`}, plan.PlannedCatalogue{Fields: []plan.CatalogueDifference{{Field: "age", Where: "extended", Configured: "keyword", Live: "long"}}}},
		"missing index": {served{"analyses", ""}, plan.PlannedCatalogue{Fields: none, Error: "index_not_found: the index of the catalogue does not exist"}},
		"other index":   {served{"files", `{}`}, plan.PlannedCatalogue{Fields: none, Hint: "its fields are known once it is served"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := plan.Catalogues(t.Context(), dir, nil, c.served)
			if err != nil || len(p.Catalogues) != 1 {
				t.Fatalf("the plan is %+v, %v", p, err)
			}
			c.want.ID, c.want.Index, c.want.Reload = "lab", "analyses", added
			if diff := cmp.Diff(c.want, p.Catalogues[0]); diff != "" {
				t.Errorf("the catalogue differs (-want +got):\n%s", diff)
			}
		})
	}
}
