package core_test

import (
	"testing"

	"tutti/internal/core"
)

func TestCatalogueSet(t *testing.T) {
	up := func(id, documentType string) *core.Catalogue {
		return &core.Catalogue{ID: id, DocumentType: documentType}
	}
	down := func(id, documentType string) *core.Catalogue {
		return &core.Catalogue{ID: id, DocumentType: documentType, Problem: &core.CatalogueProblem{Code: core.CatalogueUnknown}}
	}
	tests := map[string]struct {
		set    []*core.Catalogue
		status core.CatalogueStatus
	}{
		"none":        {nil, core.CataloguesHealthy},
		"none failed": {[]*core.Catalogue{up("a", "x"), up("b", "x")}, core.CataloguesHealthy},
		"some failed": {[]*core.Catalogue{down("a", "x"), up("b", "x")}, core.CataloguesDegraded},
		"all failed":  {[]*core.Catalogue{down("a", "x"), down("b", "")}, core.CataloguesUnhealthy},
		"one failed":  {[]*core.Catalogue{down("a", "x")}, core.CataloguesUnhealthy},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := core.CatalogueSet{Catalogues: test.set}
			if got := set.Status(); got != test.status {
				t.Errorf("status %q, want %q", got, test.status)
			}
		})
	}

	set := core.CatalogueSet{Catalogues: []*core.Catalogue{up("__proto__", "x"), up("a", ""), down("b", "x"), up("toString", "a")}}
	for _, id := range []string{"__proto__", "a", "b", "toString"} {
		if c := set.ByID(id); c == nil || c.ID != id {
			t.Errorf("Named(%q) gives %v", id, c)
		}
	}
	for _, id := range []string{"", "c", "x", "constructor"} {
		if c := set.ByID(id); c != nil {
			t.Errorf("Named(%q) gives %v", id, c)
		}
	}
	if of := set.ByDocumentType("x"); len(of) != 2 || of[0].ID != "__proto__" || of[1].ID != "b" {
		t.Errorf("OfType gives %v", of)
	}
	if of := set.ByDocumentType(""); of != nil {
		t.Errorf("those without a type have none in common, but OfType gives %v", of)
	}
}
