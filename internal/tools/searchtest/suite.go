package searchtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
)

// filtersPerSet is the number of filters per mapping with its documents.
const filtersPerSet = 40

// filtersPerSearch is the number of filters per Search.
const filtersPerSearch = 5

// Run runs cases random filters against an engine, each with facets, orders, pages and a stream of the matching documents, and
// compares the results with the oracle's. open is called once per sub-test, as by indextest.Run; without are types that
// have filters but are not tried. dialect is the engine's. The environment variables TUTTI_SEARCH_CASES and TUTTI_SEARCH_SEED override cases and seed.
// Each sub-test has one mapping with its documents, and can be repeated alone by its name.
func Run(t *testing.T, seed uint64, cases int, open func(t *testing.T) index.Index, dialect Dialect, without ...mapping.Type) {
	t.Helper()
	types := typesOf(t, open(t), dialect, without)
	seed = environment(t, "TUTTI_SEARCH_SEED", seed)
	cases = int(environment(t, "TUTTI_SEARCH_CASES", uint64(cases)))
	t.Logf("TUTTI_SEARCH_SEED=%d TUTTI_SEARCH_CASES=%d", seed, cases)
	for set := 0; set*filtersPerSet < cases; set++ {
		n := min(filtersPerSet, cases-set*filtersPerSet)
		t.Run(fmt.Sprintf("set %d", set), func(t *testing.T) {
			d := newDraw(seed, set)
			w := &fixture{TB: t, x: open(t), reproduction: fmt.Sprintf("seed %d, set %d", seed, set)}
			tree := drawMapping(d, types)
			dialect.translate(tree)
			w.createAlias(tree)
			d.omitted = dialect.Omitted
			w.write(drawHistory(d, tree))
			w.checkRandomFilters(d, n)
		})
	}
}

// typesOf returns the types of random mappings, those that the engine has: it is asked. The log has those that it lacks.
func typesOf(t *testing.T, x index.Index, dialect Dialect, without []mapping.Type) []mapping.Type {
	t.Helper()
	var lacking []mapping.Type
	types := slices.DeleteFunc(drawnTypes(without), func(of mapping.Type) bool {
		tree := mapping.NewRoot()
		tree.Properties = map[string]*mapping.Field{"f": leafOf(of)}
		dialect.translate(tree)
		raw, err := tree.Render()
		if err != nil {
			t.Fatal(err)
		}
		err = x.Ensure(t.Context(), index.Spec{Alias: fmt.Sprintf("tutti-searchtest-%016x", rand.Uint64()), Mapping: raw})
		if err != nil && !strings.Contains(err.Error(), "o handler for type [") && !strings.Contains(err.Error(), "The mapper type [") { // in the engines' words
			t.Fatalf("a field of type %s: %v", of, err)
		}
		if err != nil {
			lacking = append(lacking, of)
		}
		return err != nil
	})
	t.Logf("types %v; not tried %v; the engine lacks %v", types, without, lacking)
	return types
}

// Dialect is how an engine departs from Elasticsearch 8. The zero value departs in nothing.
type Dialect struct {
	// Types replaces types of fields by the engine's.
	Types map[mapping.Type]mapping.Type
	// Omitted are values of documents, as JSON, that the engine rejects or reads otherwise.
	Omitted map[mapping.Type][]string
	// FirstInstants is set if a year or a month as a bound of a range is its first instant.
	FirstInstants bool
}

// translate replaces types in tree.
func (d Dialect) translate(tree *mapping.Field) {
	for _, f := range tree.All() {
		if t, ok := d.Types[f.Type]; ok {
			f.Type = t
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
func (w *fixture) checkRandomFilters(d draw, filters int) {
	w.Helper()
	maker := newFilterGenerator(d, w.oracle.fields)
	rejected := 0
	var probes []probe
	for n := range filters {
		var f sqon.Filter
		facet := pick(d, maker.leaves)
		for {
			maker.preferred = ""
			if d.percent(60) {
				maker.preferred = facet
			}
			var ok bool
			if f, ok = w.accepted(maker.filter()); ok {
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
		if d.percent(10) {
			w.checkPages(d, maker, f)
		}
		if d.percent(15) {
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
	return f, f.Check(w.oracle.fields) == nil
}

// setsOf implements query.Sets for the saved sets.
func setsOf(_ context.Context, id string) ([]string, error) {
	members, ok := savedSets()[id]
	if !ok {
		return nil, core.NewError(core.CodeNotFound, "there is no saved set "+id)
	}
	return members, nil
}
