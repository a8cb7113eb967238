package kinds_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index/document"
	"tutti/internal/index/kinds"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/kindstest"
)

func known() *mapping.Field {
	root := mapping.NewRoot()
	root.RecordDeclared(nil)
	root.Properties = map[string]*mapping.Field{"id": {Type: mapping.Keyword}}
	return root
}

// counted counts documents in pages of random sizes.
func counted(rng *rand.Rand, documents []string) core.Kinds {
	c := kinds.NewCounter(known(), core.MaxKindsBytes)
	var all core.Kinds
	for len(documents) > 0 {
		n := 1 + rng.IntN(len(documents))
		for _, d := range documents[:n] {
			c.Record()
			c.Add([]byte(d))
		}
		all, documents = all.Add(c.Take(int64(n)), core.MaxKindsBytes), documents[n:]
	}
	return all
}

// rebuilt returns the fields of an index that is made from documents, and the numbers of those that it rejects.
func rebuilt(t *testing.T, rng *rand.Rand, documents []string) (fields string, rejected []int) {
	t.Helper()
	counts := counted(rng, documents)
	if counts.Records() != int64(len(documents)) {
		t.Fatalf("%d records, want %d", counts.Records(), len(documents))
	}
	tree := known()
	tree.RecordKinds(kinds.Decide(counts, kinds.Given{Fields: known()}))
	raw, err := tree.Render()
	if err != nil {
		t.Fatal(err)
	}
	checker := kinds.NewChecker(mapping.RecordedKinds(raw))
	for i, d := range documents {
		if checker != nil {
			if err := checker.Check([]byte(d)); err != nil {
				rejected = append(rejected, i)
				continue
			}
		}
		grown, _, err := document.Grow(tree, nil, []byte(d))
		if err != nil {
			t.Fatalf("%s does not fit %s: %v", d, raw, err)
		}
		tree = grown
	}
	if raw, err = tree.Render(); err != nil {
		t.Fatal(err)
	}
	return string(raw), rejected
}

// TestOrderDoesNotMatter: whatever the order of the records, an index that is made from their counts has the same fields and rejects the same
// records.
func TestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	for seed := range uint64(kindstest.Cases(t, 1000)) {
		rng := rand.New(rand.NewPCG(seed, 37))
		set := kindstest.Generate(rng)
		want, first := set.Rejected(t), ""
		for range 10 {
			order := rng.Perm(len(set))
			documents := make([]string, len(set))
			for at, i := range order {
				documents[at] = fmt.Sprintf(`{"id":"%d","v":%s}`, i, set[i])
			}
			fields, at := rebuilt(t, rng, documents)
			var rejected []int
			for _, n := range at {
				rejected = append(rejected, order[n])
			}
			slices.Sort(rejected)
			if first == "" {
				first = fields
			}
			if fields != first || !slices.Equal(rejected, want) {
				t.Fatalf("seed %d, %v in the order %v: rejected %v, want %v;\nfields %s\nfirst  %s", seed, set, order, rejected, want, fields, first)
			}
		}
	}
}
