package mcp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

// TestMCPValues: get_catalogue_fields returns values as its caller sees them, only if asked for, with the release and the time of the
// data; that they cannot be counted is a note.
func TestMCPValues(t *testing.T) {
	p := apitest.Working()
	released := apitest.Participants()
	released.DataRelease = "DR-42"
	p.Catalogues.Put(released)
	p.Searches.Indexed = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	var asked []int
	var failed error
	p.Searches.ValuesFn = func(id string, who core.Principal, fields []string, most int) (map[string]core.FieldValues, error) {
		asked = append(asked, most)
		if id != "participants" || who.ID != "" {
			t.Errorf("values of %q for %q", id, who.ID)
		}
		return map[string]core.FieldValues{
			"participant_id": {Values: []core.FieldValue{{Value: "P1", Count: 2}}}, "age_at_diagnosis": {Min: 1.5, Max: 90.0},
		}, failed
	}
	h := apitest.NewHandler(t, p, api.Config{})
	got := apitest.CallMCP(t, h, "get_catalogue_fields", `{"catalogueId":"participants"}`).Get("structuredContent")
	if len(asked) > 0 || got.Get("dataRelease").String() != "DR-42" || got.Get("dataIndexedAt").String() != "2026-05-04T12:00:00Z" {
		t.Errorf("%v %s", asked, got.Raw)
	}
	got = apitest.CallMCP(t, h, "get_catalogue_fields", `{"catalogueId":"participants","values":20}`).Get("structuredContent")
	if got.Get(`fields.#(fieldName=="participant_id").values`).Raw != `[{"value":"P1","count":2}]` ||
		got.Get(`fields.#(fieldName=="age_at_diagnosis").max`).Int() != 90 || got.Get(`fields.#(fieldName=="samples.type").values`).Exists() || asked[0] != 20 {
		t.Errorf("%v %s", asked, got.Raw)
	}
	for _, most := range []string{"-1", "101"} {
		if text := apitest.CallMCP(t, h, "get_catalogue_fields", `{"catalogueId":"participants","values":`+most+`}`).Get("content.0.text").String(); !strings.Contains(text, "values must be 0 to 100, not "+most) {
			t.Error(text)
		}
	}
	failed = core.NewError(core.CodeUnavailable, "the engine does not answer")
	got = apitest.CallMCP(t, h, "get_catalogue_fields", `{"catalogueId":"participants","values":1}`).Get("structuredContent")
	if got.Get("valuesNote").String() != "not counted: the engine does not answer" || !got.Get("fields.0").Exists() {
		t.Error(got.Raw)
	}
}

// TestMCPValuesAreBounded: only the values of listed fields are counted, and those beyond 256 KiB are left out with notes.
func TestMCPValuesAreBounded(t *testing.T) {
	p := apitest.Working()
	wide := apitest.Plain("wide")
	for i := range 200 {
		wide.Fields = append(wide.Fields, core.CatalogueField{Name: fmt.Sprintf("f%03d", i), Type: "keyword"})
	}
	p.Catalogues.Put(wide)
	var asked []string
	p.Searches.ValuesFn = func(_ string, _ core.Principal, fields []string, most int) (map[string]core.FieldValues, error) {
		asked = fields
		values := map[string]core.FieldValues{}
		for _, name := range fields {
			for range most {
				of := values[name]
				of.Values = append(of.Values, core.FieldValue{Value: strings.Repeat("v", 1000), Count: 1})
				values[name] = of
			}
		}
		return values, nil
	}
	h := apitest.NewHandler(t, p, api.Config{})
	got := apitest.CallMCP(t, h, "get_catalogue_fields", `{"catalogueId":"wide","contains":"f199","values":100}`).Get("structuredContent")
	if !slices.Equal(asked, []string{"f199"}) || got.Get("fields.0.values.#").Int() != 100 || got.Get("valuesNote").Exists() {
		t.Errorf("asked for %v: %.300s", asked, got.Raw)
	}
	got = apitest.CallMCP(t, h, "get_catalogue_fields", `{"catalogueId":"wide","contains":"none","values":100}`).Get("structuredContent")
	if asked == nil || len(asked) > 0 {
		t.Errorf("asked for %v: %.300s", asked, got.Raw)
	}
	got = apitest.CallMCP(t, h, "get_catalogue_fields", `{"catalogueId":"wide","contains":"f","values":100}`).Get("structuredContent")
	if len(asked) != 200 || got.Get("fields.#").Int() != 200 || len(got.Raw) > 300<<10 ||
		got.Get("valuesNote").String() != "the values of 198 fields are left out: together they are longer than 256 KiB; list fewer fields with contains, or lower values" ||
		got.Get("fields.1.values.#").Int() != 100 || got.Get("fields.2.values").Exists() || got.Get("fields.2.valuesNote").String() != "left out" {
		t.Errorf("asked for %d fields: %d bytes, %s", len(asked), len(got.Raw), got.Get("valuesNote"))
	}
}
