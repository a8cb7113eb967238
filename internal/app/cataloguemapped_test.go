package app_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tutti/internal/core"
)

// everything is a mapping file with multi-fields, an alias, containers of both kinds, types without range or wildcard operators, a
// field that is not indexed, and names with a meaning elsewhere.
const everything = `{"dynamic":"strict",
"runtime":{"day":{"type":"keyword"}},
"properties":{
	"analysisId":{"type":"keyword"}, "studyId":{"type":"keyword"}, "analysisState":{"type":"keyword"},
	"repositories":{"type":"nested","properties":{"code":{"type":"keyword"},"name":{"type":"keyword"},
		"organization":{"type":"keyword"},"country":{"type":"keyword"},"url":{"type":"keyword"},"type":{"type":"keyword"}}},
	"title":{"type":"text","meta":{"description":"not shown: extended describes it"},"fields":{"raw":{"type":"keyword"},"folded":{"type":"completion"}}},
	"study":{"type":"alias","path":"studyId"},
	"constructor":{"type":"keyword"}, "__proto__":{"properties":{"toString":{"type":"integer"}}},
	"half":{"type":"half_float"}, "count":{"type":"short","meta":{"description":"how many there are"}},
	"at":{"type":"date_nanos"}, "address":{"type":"ip"}, "whole":{"type":"float"}, "first":{"type":"byte"},
	"place":{"type":"geo_point"}, "span":{"type":"integer_range"}, "blob":{"type":"binary"},
	"free":{"type":"flattened"}, "kept":{"type":"object","enabled":false},
	"visits":{"type":"nested","properties":{"on":{"type":"date"},"tests":{"type":"nested","properties":{"result":{"type":"double"}}}}}
}}`

// runtimeFields is the part of everything that only Elasticsearch has.
const runtimeFields = `"runtime":{"day":{"type":"keyword"}},`

// TestCatalogueMapped: a mapping that an operator wrote is shown whole, by every engine alike.
func TestCatalogueMapped(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mapping.json")
	w, _ := newCatalogued(t, settings{repository: fmt.Sprintf("mappingFile: %q", file)}, folder{
		"mapped/base.json":    based("mapped", aliasWord, `"extended":[{"fieldName":"title","displayName":"Title of it all","description":"what it is about"}]`),
		"guarded/base.json":   based("guarded", aliasWord, ""),
		"guarded/access.json": `{"field":"title","scope":"{value}.READ"}`,
		"visits/base.json":    based("visit", aliasWord, `"nestingPrefix":"visits"`),
		"inside/base.json":    based("inside", aliasWord, `"nestingPrefix":"__proto__"`),
	})
	fields, suffix := everything, ""
	if !w.engine.runtimeFields() {
		fields, suffix = strings.Replace(fields, runtimeFields, "", 1), "_embedded"
	}
	if w.engine.openSearch() {
		suffix = "_opensearch"
	}
	if err := os.WriteFile(file, []byte(fields), 0o600); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.awaitAvailable("mapped", "guarded", "inside")
	golden(t, "catalogue_mapped"+suffix, generated.ReplaceAll(w.detail("mapped").raw, []byte(`"generatedAt":""`)))
	golden(t, "catalogue_inside", generated.ReplaceAll(w.detail("inside").raw, []byte(`"generatedAt":""`)))
	failedCatalogue{documentType: "visit", CatalogueProblem: notBuilt(
		`the field "visits", which nestingPrefix names, is nested and must be an object`,
	)}.shown(w, "visits")
	w.put("S1", "a", `"title":"One","visits":[{"tests":[{"result":1}]}]`)
	w.trigger("S1", "a")
	w.awaitConverged(wait)
}

// TestCatalogueNone: a folder in which there is nothing yet is no fault.
func TestCatalogueNone(t *testing.T) {
	t.Parallel()
	w, dir := newCatalogued(t, settings{}, folder{".keep": ""})
	w.start()
	if a := w.summary(); string(a.raw) != `{"catalogCount":0,"mode":"multiple","status":"healthy","sqonSchemaPath":"/introspection/sqon","catalogs":{}}` {
		t.Errorf("the summary is %s", a.raw)
	}
	w.wantStatus(core.CataloguesHealthy)
	for _, path := range []string{"/introspection/fields", "/introspection/a", "/graphql"} {
		w.mustRequest(http.MethodGet, path, http.StatusNotFound)
	}
	w.wantLogged("contains no JSON file and no folder")
	w.stop()

	// A folder that goes between the reading of the configuration and the start does stop the start, and leaves nothing open.
	a := w.newApp()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	err := a.Start(t.Context())
	var fault *core.Error
	if !errors.As(err, &fault) || fault.Code != core.CodeInvalid || fault.Message != "the folder of the catalogues cannot be read" ||
		!strings.HasPrefix(err.Error(), "reading the catalogues: ") {
		t.Errorf("starting without the folder: %v", err)
	}
	folder{"a/base.json": based("a", aliasWord, "")}.write(w, dir)
	w.start()
	w.awaitAvailable("a")
}
