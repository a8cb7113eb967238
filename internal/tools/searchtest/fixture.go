package searchtest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/searchtest/draw"
	"tutti/internal/tools/searchtest/model"
	"tutti/internal/tools/searchtest/oracle"
)

// maxReports is the number of differences after which a sub-test ends.
const maxReports = 5

// fixture is an engine with one alias, and the oracle with the same documents.
type fixture struct {
	testing.TB
	x     index.Index
	alias string
	// reproduction identifies the sub-test, so that it can be repeated.
	reproduction string
	oracle       *oracle.Oracle
	mapping      string
	// uncounted are the fields without values by document, as index.Index.Mapping says.
	uncounted []string
	// sources are the current documents by id.
	sources map[string]string
	version core.Version
	reports int
}

// createAlias creates the alias.
func (w *fixture) createAlias(tree *mapping.Field) {
	w.Helper()
	if err := w.tryAlias(tree); err != nil {
		w.Fatalf("%s: Ensure: %v\n%s", w.reproduction, err, w.mapping)
	}
}

// tryAlias is createAlias with the error of Ensure.
func (w *fixture) tryAlias(tree *mapping.Field) error {
	w.Helper()
	raw, err := tree.Render()
	if err != nil {
		w.Fatal(err)
	}
	w.alias = fmt.Sprintf("tutti-searchtest-%016x", rand.Uint64())
	w.mapping, w.sources = string(raw), map[string]string{}
	w.oracle = &oracle.Oracle{Fields: model.FieldsOf(tree), Sets: draw.SavedSets()}
	return w.x.Ensure(w.Context(), index.Spec{Alias: w.alias, Mapping: raw})
}

// change is a write of a document, or its removal when source is empty.
type change struct {
	id, source string
}

// write applies changes in batches, refreshing the index after each, and updates the oracle.
func (w *fixture) write(batches [][]change) {
	w.Helper()
	w.writeUnread(batches)
	if err := w.oracle.Read(w.sources); err != nil {
		w.Fatal(err)
	}
}

// writeUnread is write for documents that the oracle does not read.
func (w *fixture) writeUnread(batches [][]change) {
	w.Helper()
	for _, changes := range batches {
		b := core.Batch{Index: w.alias}
		for _, c := range changes {
			w.version++
			write := core.Write{Op: core.OpIndex, ID: c.id, Version: w.version, Document: []byte(c.source)}
			w.sources[c.id] = c.source
			if c.source == "" {
				write.Op, write.Document = core.OpDelete, nil
				delete(w.sources, c.id)
			}
			b.Items = append(b.Items, core.BatchItem{Op: write.Op, ID: write.ID, Version: write.Version, Start: len(b.Body)})
			item := &b.Items[len(b.Items)-1]
			b.Body, item.DocStart, item.DocEnd = w.x.Encode(b.Body, write)
			item.End = len(b.Body)
		}
		results, err := w.x.Write(w.Context(), b)
		if err != nil {
			w.Fatalf("%s: Write: %v", w.reproduction, err)
		}
		for i, r := range results {
			if r.Outcome != core.OutcomeIndexed && r.Outcome != core.OutcomeRemoved {
				w.Fatalf("%s: %s: %v %s: %s\n%s", w.reproduction, changes[i].id, r.Outcome, r.Type, r.Reason, changes[i].source)
			}
		}
		if err := w.x.Refresh(w.Context(), w.alias); err != nil {
			w.Fatalf("%s: Refresh: %v", w.reproduction, err)
		}
	}
}

// drawHistory returns random writes, rewrites and removals, in several batches, after which there are about n documents: an engine has several
// segments, with deleted rows.
func drawHistory(d draw.Choices, tree *mapping.Field, n int) [][]change {
	batches := make([][]change, 4)
	for i := range n {
		id := fmt.Sprintf("d%05d", i)
		last := d.IntN(len(batches))
		batches[last] = append(batches[last], change{id, draw.Document(d, tree, id)})
		for d.Percent(10) && last+1 < len(batches) {
			last++
			rewritten := change{id: id}
			if d.Percent(70) {
				rewritten.source = draw.Document(d, tree, id)
			}
			batches[last] = append(batches[last], rewritten)
		}
	}
	for _, changes := range batches {
		d.Shuffle(len(changes), func(i, j int) { changes[i], changes[j] = changes[j], changes[i] })
	}
	return batches
}

// differs reports a difference, and ends the sub-test after maxReports.
func (w *fixture) differs(what, filter, difference string) {
	w.Helper()
	w.Errorf("%s, %s of %s:\n%s", w.reproduction, what, filter, difference)
	w.reports++
	if w.reports == 1 && len(w.sources) <= 100 {
		w.Logf("mapping:\n%s\ndocuments:\n%s", w.mapping, w.documents())
	}
	if w.reports >= maxReports {
		w.FailNow()
	}
}

// documents returns the documents of the index.
func (w *fixture) documents() string {
	var b strings.Builder
	for _, d := range w.oracle.Documents {
		fmt.Fprintf(&b, "%s %s\n", d.ID, w.sources[d.ID])
	}
	return b.String()
}
