package core_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
)

// kindsOf encodes the kinds of records.
func kindsOf(records int64, paths map[string]core.PathKinds) core.Kinds {
	return core.NewKinds(records, 2*records, func(yield func(string, core.PathKinds) bool) {
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			if !yield(path, paths[path]) {
				return
			}
		}
	}, core.MaxKindsBytes)
}

// TestKindsAdd: kinds are what was encoded, and their sum has the sums, in whatever order they are added.
func TestKindsAdd(t *testing.T) {
	t.Parallel()
	names := []string{"a", "a-b", "a.b", "a.b.c", "ab", "b", "ä", ""}
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		want := map[string]core.PathKinds{}
		records := int64(0)
		parts := make([]core.Kinds, 1+rng.IntN(5))
		for i := range parts {
			paths := map[string]core.PathKinds{}
			for _, name := range names {
				if rng.IntN(2) == 0 {
					continue
				}
				p := core.PathKinds{
					Objects: rng.Int64N(3), Numbers: rng.Int64N(1000), Booleans: rng.Int64N(2), Texts: rng.Int64(),
					Lists: rng.Int64N(2), Undated: rng.Int64N(3), NoDate: rng.Int64N(500),
				}
				p.Texts >>= 8
				paths[name] = p
				sum := want[name]
				sum.Add(p)
				want[name] = sum
			}
			n := rng.Int64N(500)
			records += n
			parts[i] = kindsOf(n, paths)
			if diff := cmp.Diff(paths, maps.Collect(parts[i].All())); diff != "" {
				t.Fatalf("seed %d (-encoded +decoded):\n%s", seed, diff)
			}
		}
		for range 3 {
			rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
			var all core.Kinds
			for _, part := range parts {
				all = all.Add(part, core.MaxKindsBytes)
			}
			if diff := cmp.Diff(want, maps.Collect(all.All())); diff != "" || all.Records() != records || all.Documents() != 2*records {
				t.Fatalf("seed %d, %d records with %d documents, want %d (-want +got):\n%s", seed, all.Records(), all.Documents(), records, diff)
			}
		}
	}
}

// TestKindsOfVersion1: kinds that a release stored with the encoding before, which has no number of documents and no counts of lists and dates,
// are not whole, and count nothing, also with others.
func TestKindsOfVersion1(t *testing.T) {
	t.Parallel()
	old := core.Kinds("\x01\x28\x00\x03rev\x02\x28\x02\x02ow\x98\x05\x03") // of 40 records: rev is a number, row an object in a list or a text
	now := kindsOf(3, map[string]core.PathKinds{"rev": {Numbers: 3}})
	for name, k := range map[string]core.Kinds{
		"alone": old, "added to": old.Add(now, core.MaxKindsBytes), "added": now.Add(old, core.MaxKindsBytes), "to nothing": core.Kinds(nil).Add(old, core.MaxKindsBytes),
	} {
		if paths := maps.Collect(k.All()); k.Whole() || len(paths) > 0 || k.Records() != 0 || k.Documents() != 0 {
			t.Errorf("%s: whole %t, %d records with %d documents, %v", name, k.Whole(), k.Records(), k.Documents(), paths)
		}
	}
}

// TestKindsOverflown: kinds beyond the bound are not whole, nor is what they are added to.
func TestKindsOverflown(t *testing.T) {
	t.Parallel()
	few := map[string]core.PathKinds{"a": {Texts: 1}}
	many := map[string]core.PathKinds{}
	for i := range 100 {
		many[fmt.Sprintf("%08x", i*7919)] = core.PathKinds{Texts: 1}
	}
	all := kindsOf(1, many)
	for name, k := range map[string]core.Kinds{
		"too many": all.Add(kindsOf(1, few), 100), "one alone": core.Kinds(nil).Add(all, 100), "to": core.OverflownKinds().Add(kindsOf(1, few), 1000),
		"from": kindsOf(1, few).Add(core.OverflownKinds(), 1000),
	} {
		if k.Whole() || k.Records() != 0 || len(maps.Collect(k.All())) != 0 {
			t.Errorf("%s: %d records are whole", name, k.Records())
		}
	}
	for n := range all { // a damaged value ends early
		paths := 0
		for range all[:n].All() {
			paths++
		}
		if paths > len(many) {
			t.Errorf("%d bytes have %d paths", n, paths)
		}
	}
}

// TestKindsOfPages: the kinds of an organization are those of the pages that count, over restarts of its chain and of its list.
func TestKindsOfPages(t *testing.T) {
	t.Parallel()
	page := func(n int64) core.Kinds { return kindsOf(n, map[string]core.PathKinds{"a": {Numbers: n}}) }
	want := func(run *core.OrganizationRun, records int64) {
		t.Helper()
		kept := maps.Collect(run.Kinds.All())
		if run.Kinds.Records() != records || kept["a"].Numbers != records {
			t.Errorf("%d records, want %d", run.Kinds.Records(), records)
		}
	}
	run := core.OrganizationRun{DoneThrough: -1}
	run.EndPage(1, core.Totals{}, page(10))
	run.EndPage(2, core.Totals{}, page(100))
	want(&run, 0)
	run.RestartFrom(0)
	run.EndPage(0, core.Totals{}, page(1))
	run.EndPage(0, core.Totals{}, page(1000)) // redelivered
	want(&run, 1)
	run.EndPage(1, core.Totals{}, page(20))
	run.EndPage(2, core.Totals{}, nil) // which has no rows any more
	want(&run, 21)
	run.Reread()
	run.EndPage(0, core.Totals{}, page(2))
	want(&run, 2)

	run.State = core.JobSucceeded
	group := run.MoveKinds(page(5))
	if group.Records() != 7 || run.Kinds != nil || run.MoveKinds(group).Records() != 7 {
		t.Errorf("the group has %d records", group.Records())
	}
	if run.Moved = true; run.MoveKinds(group).Whole() {
		t.Error("an organization that counts by itself as well is not noticed")
	}
}

// TestKindsAheadAreBounded: the pages that wait for an earlier one do not make the organization too large to be stored.
func TestKindsAheadAreBounded(t *testing.T) {
	t.Parallel()
	paths := map[string]core.PathKinds{}
	for i := range 10_000 {
		paths[fmt.Sprintf("%x", i*7919)] = core.PathKinds{Texts: 1}
	}
	run := core.OrganizationRun{DoneThrough: -1}
	for n := range 30 {
		run.EndPage(1+n, core.Totals{}, kindsOf(1, paths))
		size := len(run.Kinds)
		for _, k := range run.AheadKinds {
			size += len(k)
		}
		if size > core.MaxKindsBytes {
			t.Fatalf("%d pages have %d bytes", n+1, size)
		}
	}
	if run.EndPage(0, core.Totals{}, nil); run.Kinds.Whole() {
		t.Error("the kinds of all pages are whole")
	}
}
