package compare_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/app/compare"
	"tutti/internal/core"
	"tutti/internal/index/mappingplan"
)

// served is a server without catalogues, whose repositories write to one index, which may be missing.
type served struct {
	index   string
	mapping string
}

func (s served) IDs(context.Context) ([]string, error) { return nil, nil }

func (s served) Fields(context.Context, string) (core.Catalogue, error) { return core.Catalogue{}, nil }

func (s served) Plan(_ context.Context, index string) (*mappingplan.Plan, error) {
	switch {
	case index != s.index:
		return nil, nil
	case s.mapping == "":
		return &mappingplan.Plan{State: "absent"}, nil
	default:
		return &mappingplan.Plan{State: "alias", Mapping: json.RawMessage(s.mapping)}, nil
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
	none, added := []compare.CatalogueDifference{}, []string{"the catalogue is added"}
	for name, c := range map[string]struct {
		served served
		want   compare.PlannedCatalogue
	}{
		"its index":     {served{"analyses", `{"properties":{"age":{"type":"long"},"studyId":{"type":"keyword"}}}`}, compare.PlannedCatalogue{Fields: []compare.CatalogueDifference{{Field: "age", Where: "extended", Configured: "keyword", Live: "long"}}}},
		"missing index": {served{"analyses", ""}, compare.PlannedCatalogue{Fields: none, Error: "index_not_found: the index analyses does not exist"}},
		"other index":   {served{"files", `{}`}, compare.PlannedCatalogue{Fields: none, Hint: "its fields are known once it is served"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := compare.Catalogues(t.Context(), dir, nil, c.served)
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

// before is a server of an earlier release, which serves the catalogue lab.
type before struct {
	served
	fields []core.CatalogueField
}

func (before) IDs(context.Context) ([]string, error) { return []string{"lab"}, nil }

func (b before) Fields(context.Context, string) (core.Catalogue, error) {
	return core.Catalogue{ID: "lab", Fields: b.fields}, nil
}

// TestPlanOfDisplayNames: default display names that a server of an earlier release shows, and this one does not, are listed, those that
// stay are not.
func TestPlanOfDisplayNames(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "base.json"), []byte(`{"catalogId":"lab","documentType":"analysis","esIndex":"analyses"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	server := before{
		served{"analyses", `{"properties":{"tumour":{"properties":{"sample":{"properties":{"id":{"type":"keyword"}}}}},"studyId":{"type":"keyword"}}}`},
		[]core.CatalogueField{{Name: "studyId", DisplayName: "Study Id", Type: "keyword"}, {Name: "tumour.sample.id", DisplayName: "Sample Id", Type: "keyword"}},
	}
	p, err := compare.Catalogues(t.Context(), dir, nil, server)
	if err != nil || len(p.Catalogues) != 1 {
		t.Fatalf("the plan is %+v, %v", p, err)
	}
	var named []string
	for _, text := range p.Catalogues[0].Reload {
		if strings.Contains(text, "display name") {
			named = append(named, text)
		}
	}
	if diff := cmp.Diff([]string{`the field tumour.sample.id has the display name "Tumour Sample Id" instead of "Sample Id"`}, named); diff != "" {
		t.Errorf("the display names differ (-want +got):\n%s\n%v", diff, p.Catalogues[0].Reload)
	}
}
