package searchtest

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
	"tutti/internal/sqon"
)

// filtersPerSet is how many filters are asked of one mapping with its documents.
const filtersPerSet = 40

// filtersPerSearch is how many of them are asked in one Search.
const filtersPerSearch = 5

// Run asks an engine so many random filters, each with facets, orders, pages and a stream of the documents that it finds, and
// holds the answers to those of the oracle. open is called once per sub-test, as indextest.Run does; extra are types that the
// engine has beside those that all have. The environment variables TUTTI_SEARCH_CASES and TUTTI_SEARCH_SEED take the place of
// cases and seed. Each sub-test has one mapping with its documents, and the name that repeats it alone.
func Run(t *testing.T, seed uint64, cases int, open func(t *testing.T) index.Index, extra ...mapping.Type) {
	t.Helper()
	seed = environment(t, "TUTTI_SEARCH_SEED", seed)
	cases = int(environment(t, "TUTTI_SEARCH_CASES", uint64(cases)))
	t.Logf("TUTTI_SEARCH_SEED=%d TUTTI_SEARCH_CASES=%d", seed, cases)
	for set := 0; set*filtersPerSet < cases; set++ {
		n := min(filtersPerSet, cases-set*filtersPerSet)
		t.Run(fmt.Sprintf("set %d", set), func(t *testing.T) {
			d := drawOf(seed, set)
			w := &world{TB: t, x: open(t), place: fmt.Sprintf("seed %d, set %d", seed, set)}
			tree := drawMapping(d, extra)
			w.begin(tree)
			w.write(drawHistory(d, tree))
			w.ask(d, n)
		})
	}
}

// environment returns the number that a variable holds, otherwise when it is not set.
func environment(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	held := os.Getenv(name)
	if held == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(held, 10, 63)
	if err != nil {
		t.Fatalf("%s is no number: %v", name, err)
	}
	return n
}

// ask asks some filters.
func (w *world) ask(d draw, filters int) {
	w.Helper()
	maker := filtersOf(d, w.oracle.fields)
	refused := 0
	var asked []probe
	for n := range filters {
		var f sqon.Filter
		facet := pick(d, maker.leaves)
		for {
			maker.likely = ""
			if d.in(60) {
				maker.likely = facet
			}
			var ok bool
			if f, ok = w.accepted(maker.filter()); ok {
				break
			}
			if refused++; refused > 50*filters {
				w.Fatalf("%s: %d of the filters were refused", w.place, refused)
			}
		}
		asked = append(asked, w.probes(d, maker, f, facet)...)
		if (n+1)%filtersPerSearch == 0 || n+1 == filters {
			w.together(asked)
			asked = nil
		}
		if d.in(10) {
			w.paged(d, maker, f)
		}
		if d.in(15) {
			w.streamed(d, maker, f)
		}
	}
}

// accepted parses a filter; false when it does not fit the fields, as one with too many alternatives of a pivot.
func (w *world) accepted(text string) (sqon.Filter, bool) {
	w.Helper()
	f, err := sqon.Parse([]byte(text))
	if err != nil {
		w.Fatalf("%s: the maker of filters made what is none: %v\n%s", w.place, err, text)
	}
	return f, f.Check(w.oracle.fields) == nil
}

// setsOf returns the saved sets as query.Lower asks for them.
func setsOf(_ context.Context, id string) ([]string, error) {
	members, ok := savedSets()[id]
	if !ok {
		return nil, core.NewError(core.CodeNotFound, "there is no saved set "+id)
	}
	return members, nil
}
