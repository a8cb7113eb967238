package document_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index/document"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/testkit/dataset"
	"tutti/internal/upstream"
)

// TestLyricGrowsWithItsRecords checks that the mapping derived from one record after another accepts all of them, with their
// repositories, and that related entities are nested.
func TestLyricGrowsWithItsRecords(t *testing.T) {
	block := upstream.RepositoriesBlock(core.Repository{Code: "ca", Type: core.TypeLyric, URL: "http://h"})
	known := mapping.Lyric()
	var docs [][]byte
	for _, r := range dataset.GenerateRecords(1, "PANC-CA", 300) {
		doc := upstream.Splice(nil, r.Body, block)
		docs = append(docs, doc)
		// As the engines do, remove the fields without a type.
		empties, err := document.Empties(known, doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range empties {
			if !strings.HasPrefix(path, "data.") {
				t.Errorf("%s holds nothing", path)
			}
		}
		grown, _, err := document.Grow(known, nil, doc)
		if err != nil {
			t.Fatalf("%v in %s", err, doc)
		}
		known = grown
	}
	var c document.Checker
	for _, doc := range docs {
		if unknown, err := c.Check(known, doc, nil); err != nil || unknown {
			t.Fatalf("unknown %v, %v in %s", unknown, err, doc)
		}
	}
	got := map[string]mapping.Type{}
	for _, path := range []string{
		"data", "data.primary_site", "data.is_deceased", "data.lost_to_followup_reason", "data.specimens", "data.specimens.samples",
		"data.specimens.specimen_collection_date", "data.primary_diagnoses", "data.primary_diagnoses.treatments",
		"data.primary_diagnoses.treatments.number_of_cycles", "data.follow_ups", "data.height_cm",
	} {
		if f := known.Lookup(path); f != nil {
			got[path] = f.Type
		}
	}
	want := map[string]mapping.Type{
		"data": mapping.Object, "data.primary_site": mapping.Keyword, "data.is_deceased": mapping.Boolean,
		"data.lost_to_followup_reason": mapping.Keyword, "data.specimens": mapping.Nested, "data.specimens.samples": mapping.Nested,
		"data.specimens.specimen_collection_date": mapping.Date, "data.primary_diagnoses": mapping.Nested,
		"data.primary_diagnoses.treatments": mapping.Nested, "data.primary_diagnoses.treatments.number_of_cycles": mapping.Double,
		"data.follow_ups": mapping.Nested, "data.height_cm": mapping.Double,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestLyricsEnvelopeHoldsItsTypes checks that a record with other types in its envelope is rejected, and does not change the
// mapping.
func TestLyricsEnvelopeHoldsItsTypes(t *testing.T) {
	for _, c := range []struct{ name, doc, reason string }{
		{"isValid", `{"isValid":"perhaps"}`, `[isValid]`},
		{"organization", `{"organization":{"name":"O"}}`, `[organization]`},
		{"systemId", `{"systemId":{"id":1}}`, `[systemId]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, added, err := document.Grow(mapping.Lyric(), nil, []byte(c.doc))
			if err == nil || !strings.HasPrefix(err.Error(), c.reason) || added != nil {
				t.Errorf("added %v, %v", added, err)
			}
		})
	}
}

// TestLyricNumbers checks that a first number without a fraction does not truncate later ones.
func TestLyricNumbers(t *testing.T) {
	known, _, err := document.Grow(mapping.Lyric(), nil, []byte(`{"data":{"height":150,"n":[1,2]}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"data.height", "data.n"} {
		if f := known.Lookup(path); f == nil || f.Type != mapping.Double {
			t.Errorf("%s is %+v, want double", path, f)
		}
	}
	song, _, err := document.Grow(mapping.Song(), nil, []byte(`{"data":{"height":150}}`))
	if err != nil || song.Lookup("data.height").Type != mapping.Long {
		t.Errorf("a Song record's integer: %v, %v", song, err)
	}
}
