package fieldtype_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/filter/fieldtype"
)

var update = flag.Bool("update", false, "write the generated table of the guide")

// The lines before and after the generated table.
const (
	tableStart = "<!-- go test ./internal/filter/fieldtype -run TestEnginesGuide -update -->\n"
	tableEnd   = "<!-- end -->\n"
)

// TestEnginesGuide: the guide to the engines has the table of types; -update writes it.
func TestEnginesGuide(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "..", "..", "deploy", "docs", "engines.md")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(raw), tableStart)
	_, after, ends := strings.Cut(rest, tableEnd)
	if !found || !ends {
		t.Fatalf("%s has no table between %q and %q", file, tableStart, tableEnd)
	}
	want := before + tableStart + guideTable() + tableEnd + after
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(raw), want); diff != "" {
		t.Errorf("%s (-update writes it): %s", file, diff)
	}
}

// guideTable returns the table with a line for all types that have the same cells.
func guideTable() string {
	var cells []string
	names := map[string][]string{}
	for _, name := range fieldtype.Names(func(t *fieldtype.Type) bool { return t.Engines != 0 }) {
		line := cellsOf(fieldtype.Of(name))
		if !slices.Contains(cells, line) {
			cells = append(cells, line)
		}
		names[line] = append(names[line], "`"+name+"`")
	}
	var b strings.Builder
	b.WriteString("| types | filter by | sort | facet | embedded | Elasticsearch | OpenSearch |\n|---|---|---|---|---|---|---|\n")
	for _, line := range cells {
		b.WriteString("| " + strings.Join(names[line], ", ") + " | " + line + " |\n")
	}
	return b.String()
}

func cellsOf(t *fieldtype.Type) string {
	filter, sort, facet := "no", "no", "no"
	switch {
	case t.Analyzed():
		filter = "words, patterns"
	case t.Ordered():
		filter = "values, ranges"
	case t.Group == fieldtype.Range:
		filter = "the values within"
	case t.Searchable():
		filter = "values, patterns"
	}
	switch {
	case t.Countable() && t.Keyed() && t.Group != fieldtype.Unsigned:
		sort = "all modes"
	case t.Countable():
		sort = "`min`, `max`"
	}
	switch {
	case t.Ordered():
		facet = "statistics, histogram, ranges"
	case t.Countable():
		facet = "values"
	}
	cells := []string{filter, sort, facet}
	for _, engine := range []fieldtype.Engines{fieldtype.Embedded, fieldtype.Elasticsearch, fieldtype.OpenSearch} {
		cell := "yes"
		if lacks := t.Fault(engine, fieldtype.Absent); lacks != nil {
			cell = "from " + lacks.Till
		}
		if t.Fault(engine, fieldtype.Miscounted) != nil {
			cell += ", no sort, no facet"
		}
		if !t.Has(engine) {
			cell = "no"
		}
		cells = append(cells, cell)
	}
	return strings.Join(cells, " | ")
}
