package searchtest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/searchtest/draw"
)

// filtersPerSearch is the number of filters per Search.
const filtersPerSearch = 5

// RunTypes tries all types of fields that an engine has, in one index with so many random documents, and compares the results with the
// oracle's: all orders of each field, paged to the end, sorted streams, and so many random filters with facets, pages and streams. open is
// called once. dialect is the engine's. The environment variables TUTTI_SEARCH_CASES and TUTTI_SEARCH_SEED override the number of filters and
// the seed of everything random.
func RunTypes(t *testing.T, open func(t *testing.T) index.Index, dialect Dialect, documents, filters int) {
	t.Helper()
	seed := environment(t, "TUTTI_SEARCH_SEED", 1)
	filters = int(environment(t, "TUTTI_SEARCH_CASES", uint64(filters)))
	w := &fixture{TB: t, x: open(t), reproduction: fmt.Sprintf("TUTTI_SEARCH_SEED=%d TUTTI_SEARCH_CASES=%d", seed, filters)}
	d := draw.New(seed)
	d.Omitted, d.Low, d.Plain = dialect.Omitted, dialect.Signed, dialect.PlainWildcards
	w.createTypes(dialect)
	w.oracle.Conflates, w.oracle.ZerosApart, w.oracle.Signed = dialect.Conflates, dialect.ZerosApart, dialect.Signed
	w.write(drawHistory(d, w.oracle.Fields.Tree, documents))
	t.Run("orders", func(t *testing.T) { w.with(t).checkOrders() })
	t.Run("filters", func(t *testing.T) { w.with(t).checkRandomFilters(d, filters) })
}

// createTypes creates the alias with all types of the table that the engine has: it is asked. The log has those that it lacks.
func (w *fixture) createTypes(dialect Dialect) {
	w.Helper()
	types := fieldtype.Names(func(t *fieldtype.Type) bool { return t.Name != string(mapping.FlatObject) }) // it is what flattened is
	var lacking []string
	for {
		tree := draw.Mapping(types)
		dialect.translate(tree)
		err := w.tryAlias(tree)
		if err == nil {
			break
		}
		_, rest, _ := strings.Cut(err.Error(), "\"") // the first field that the error names
		path, _, _ := strings.Cut(rest, "\"")
		refused := tree.Lookup(path)
		if refused == nil || !slices.Contains(types, string(refused.Type)) || w.Context().Err() != nil {
			w.Fatalf("Ensure: %v", err)
		}
		of := string(refused.Type)
		types = slices.DeleteFunc(types, func(name string) bool { return name == of })
		lacking = append(lacking, of)
	}
	for _, name := range types {
		if !fieldtype.Of(name).Has(dialect.Engine) && dialect.Types[mapping.Type(name)] == "" {
			w.Errorf("%s has the type %s, which the table says it lacks", dialect.Name, name)
		}
	}
	for _, name := range lacking {
		if fieldtype.Of(name).Has(dialect.Engine) && dialect.Engine == fieldtype.Embedded { // other engines may have it by a plugin
			w.Errorf("%s lacks the type %s, which the table says it has", dialect.Name, name)
		}
	}
	raw, err := w.x.Mapping(w.Context(), w.alias)
	if err != nil {
		w.Fatal(err)
	}
	whole, err := mapping.Parse(raw)
	if err != nil {
		w.Fatal(err)
	}
	for path, f := range whole.All() {
		if string(f.Params["doc_values"]) == "false" {
			w.uncounted = append(w.uncounted, path)
		}
	}
	w.Logf("%s has the types %v, and lacks %v", dialect.Name, types, lacking)
}

// Dialect is how an engine departs from Elasticsearch 8. The zero value departs in nothing.
type Dialect struct {
	// Name is that of the engine with its version. Engine is its column of the table of types.
	Name   string
	Engine fieldtype.Engines
	// Types replaces types of fields by the engine's.
	Types map[mapping.Type]mapping.Type
	// Omitted are values of documents, as JSON, that the engine rejects or reads otherwise.
	Omitted map[mapping.Type][]string
	// Conflates is set if a document whose value is the lowest or highest of its type is sorted like one without a value, where that comes
	// beside it.
	Conflates bool
	// ZerosApart is set if the zeros of a floating-point type are two values, which are added up in facets only after the others were cut.
	ZerosApart bool
	// Signed is set if an unsigned_long is as in OpenSearch: filters, ranges and orders lose documents with several values of which one is from
	// 1<<63 on, which are not drawn; the lowest of several values is the second one if the first is 0; the cardinality is that of doubles.
	Signed bool
	// PlainWildcards is set if wildcard fields need doc_values for filters of nested objects, do not find the empty text, and treat backslashes
	// and the case of letters beyond ASCII otherwise: such values are not drawn.
	PlainWildcards bool
	// FirstInstants is set if a year or a month as a bound of a range is its first instant.
	FirstInstants bool
}

// translate replaces types in tree.
func (d Dialect) translate(tree *mapping.Field) {
	for _, f := range tree.All() {
		if t, ok := d.Types[f.Type]; ok {
			f.Type = t
		}
		if d.PlainWildcards && f.Type == "wildcard" {
			f.Params = map[string]json.RawMessage{"doc_values": json.RawMessage("true")}
		}
	}
}

// environment returns the number in an environment variable, fallback if it is not set.
func environment(t *testing.T, name string, fallback uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		t.Fatalf("%s is not a number: %v", name, err)
	}
	return n
}

// checkRandomFilters runs some random filters.
func (w *fixture) checkRandomFilters(d draw.Choices, filters int) {
	w.Helper()
	maker := draw.NewFilters(d, w.oracle.Fields)
	rejected := 0
	var probes []probe
	for n := range filters {
		var f sqon.Filter
		facet := maker.Leaves[n%len(maker.Leaves)]
		for {
			maker.Preferred = ""
			if d.Percent(60) {
				maker.Preferred = facet
			}
			var ok bool
			if f, ok = w.accepted(maker.Next()); ok {
				break
			}
			if rejected++; rejected > 50*filters {
				w.Fatalf("%s: %d of the filters were rejected", w.reproduction, rejected)
			}
		}
		probes = append(probes, w.drawProbes(d, maker, f, facet)...)
		if (n+1)%filtersPerSearch == 0 || n+1 == filters {
			w.searchAll(probes)
			probes = nil
		}
		if d.Percent(10) {
			w.checkPages(d, maker, f)
		}
		if d.Percent(15) {
			w.checkStream(d, maker, f)
		}
	}
}

// accepted parses a filter; false when it is invalid for the fields, for example one with too many alternatives of a pivot.
func (w *fixture) accepted(text string) (sqon.Filter, bool) {
	w.Helper()
	f, err := sqon.Parse([]byte(text))
	if err != nil {
		w.Fatalf("%s: the generator made an invalid filter: %v\n%s", w.reproduction, err, text)
	}
	return f, f.Check(w.oracle.Fields) == nil
}

// setsOf implements query.Sets for the saved sets.
func setsOf(_ context.Context, id string) ([]string, error) {
	members, ok := draw.SavedSets()[id]
	if !ok {
		return nil, core.NewError(core.CodeNotFound, "there is no saved set "+id)
	}
	return members, nil
}
