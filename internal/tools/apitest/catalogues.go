package apitest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"tutti/http/api"
	"tutti/internal/core"
)

var _ core.Catalogues = (*CatalogueShelf)(nil)

// CatalogueShelf is where the catalogues of a test are.
type CatalogueShelf struct {
	set atomic.Pointer[core.CatalogueSet]
}

// NewShelf returns one with some catalogues.
func NewShelf(all ...*core.Catalogue) *CatalogueShelf {
	s := &CatalogueShelf{}
	s.Put(all...)
	return s
}

// Catalogues implements core.Catalogues.
func (s *CatalogueShelf) Catalogues() *core.CatalogueSet { return s.set.Load() }

// Put makes some catalogues all that there are.
func (s *CatalogueShelf) Put(all ...*core.Catalogue) {
	slices.SortFunc(all, func(a, b *core.Catalogue) int { return cmp.Compare(a.ID, b.ID) })
	s.set.Store(&core.CatalogueSet{Catalogues: all})
}

// Participants is a catalogue that is available and has all that one can have.
func Participants() *core.Catalogue {
	return &core.Catalogue{
		ID: "participants", DocumentType: "participant", Description: "Clinical trial participant records.",
		Fields: []core.CatalogueField{
			{Name: "participant_id", DisplayName: "Participant ID", Type: "keyword"},
			{Name: "age_at_diagnosis", DisplayName: "Age At Diagnosis", Type: "long", Unit: "year", Description: `Age in "whole" years, <100 & >0`},
			{Name: "diagnosis_date", DisplayName: "Diagnosis Date", Type: "date"},
			{Name: "samples", DisplayName: "Samples", Type: "nested"},
			{Name: "samples.type", DisplayName: "Type", Type: "keyword", MultiValued: true},
			{Name: "samples.weight", DisplayName: "Weight", Type: "float", Unit: "µg"},
		},
	}
}

// Biosamples is a catalogue that failed.
func Biosamples() *core.Catalogue {
	return &core.Catalogue{
		ID: "biosamples", DocumentType: "biosample", Description: "Tissue sample records.",
		Problem: &core.CatalogueProblem{Code: core.CatalogueIndexNotFound, Message: "The configured index does not exist."},
	}
}

// Plain is a catalogue that is available and has the least that one can have.
func Plain(id string) *core.Catalogue {
	return &core.Catalogue{
		ID: id, DocumentType: "record",
		Fields: []core.CatalogueField{{Name: "id", DisplayName: "Id", Type: "keyword"}},
	}
}

// Broken is a catalogue that failed of which only the id is known.
func Broken(id string) *core.Catalogue {
	return &core.Catalogue{
		ID: id, Problem: &core.CatalogueProblem{Code: core.CatalogueSchemaBuild, Message: "base.json is not JSON."},
	}
}

// Wide is a catalogue with many fields.
func Wide(id string, fields int) *core.Catalogue {
	c := &core.Catalogue{ID: id, DocumentType: "analysis"}
	types := []string{"keyword", "long", "date", "nested", "text"}
	for i := range fields {
		c.Fields = append(c.Fields, core.CatalogueField{
			Name: "donor.diagnosis.field_" + strconv.Itoa(i), DisplayName: "Field " + strconv.Itoa(i), Type: types[i%len(types)],
		})
	}
	return c
}

// Catalogued returns a handler over catalogues, and where they are.
func Catalogued(t testing.TB, cfg api.Config, all ...*core.Catalogue) (Handler, *CatalogueShelf) {
	t.Helper()
	p := Working()
	p.Catalogues.Put(all...)
	return NewHandler(t, p, cfg), p.Catalogues
}

// Introspect gets a path, which must be answered with a status, and returns the body.
func Introspect(t *testing.T, h Handler, target string, status int) []byte {
	t.Helper()
	res, body := Do(t, h, Ask{Method: "GET", Target: target}) //nolint:bodyclose // Do closes it
	if res.StatusCode != status {
		t.Fatalf("GET %s: got %d, want %d\n%s", target, res.StatusCode, status, body)
	}
	if ct := res.Header.Get("Content-Type"); status == 200 && ct != "application/json" {
		t.Errorf("GET %s: content type %q", target, ct)
	}
	return body
}

// WantFailure asks for a path that must be answered as that of a failed catalogue.
func WantFailure(t *testing.T, h Handler, a Ask, want string) {
	t.Helper()
	r, res, body := Exchange(t, h, a) //nolint:bodyclose // Exchange closes it
	if patternOf(h, r) != "" {
		checkAgainstDocument(t, h, r, res, body)
	}
	if res.StatusCode != http.StatusNotFound || res.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %s: got %d %s", a.Method, a.Target, res.StatusCode, res.Header.Get("Content-Type"))
	}
	if string(body) != want {
		t.Errorf("%s %s: got %s, want %s", a.Method, a.Target, body, want)
	}
	if length := res.Header.Get("Content-Length"); length != strconv.Itoa(len(want)) {
		t.Errorf("%s %s: content length %s of %d", a.Method, a.Target, length, len(want))
	}
}

// GoldenInOrder compares indented JSON with a file of testdata, whose members stay in their order.
func GoldenInOrder(t *testing.T, name string, body []byte) {
	t.Helper()
	var got bytes.Buffer
	if err := json.Indent(&got, body, "", "  "); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, body)
	}
	got.WriteByte('\n')
	file := filepath.Join("testdata", name+".golden.json")
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s:\n%s", file, diff)
	}
}

// MemberOf returns a member of a JSON object by the path to it, nil when there is none.
func MemberOf(t *testing.T, body []byte, path ...string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, body)
	}
	for _, name := range path {
		object, ok := v.(map[string]any)
		if !ok || object[name] == nil {
			return nil
		}
		v = object[name]
	}
	return v
}

// BiosamplesFailure is the answer to requests for the catalogue Biosamples.
const BiosamplesFailure = `{"catalogueId":"biosamples","description":"Tissue sample records.","documentType":"biosample","status":"failed",` +
	`"error":{"code":"index_not_found","message":"The configured index does not exist."},"details":"/introspection/biosamples"}`
