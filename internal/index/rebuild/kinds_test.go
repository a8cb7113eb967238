package rebuild_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index/kinds"
	"tutti/internal/index/mapping"
	"tutti/internal/index/rebuild"
)

// documents returns a batch of documents, whose ids are their numbers.
func (w *world) documents(to string, v core.Version, documents ...string) core.Batch {
	b := core.Batch{Index: to}
	for i, document := range documents {
		item := core.BatchItem{ID: fmt.Sprint(i), Version: v, Start: len(b.Body)}
		write := core.Write{Op: core.OpIndex, ID: item.ID, Version: v, Document: []byte(document)}
		b.Body, item.DocStart, item.DocEnd = w.x.Encode(b.Body, write)
		item.End = len(b.Body)
		b.Items = append(b.Items, item)
	}
	return b
}

// counts returns the kinds of documents.
func counts(documents ...string) rebuild.Counts {
	return func(context.Context, func(core.Kinds, int64) string) (core.Kinds, error) {
		c := kinds.NewCounter(nil, core.MaxKindsBytes)
		for _, d := range documents {
			c.Record()
			c.Add([]byte(d))
		}
		return c.Take(int64(len(documents))), nil
	}
}

// outcomes writes documents through a Mirror and returns their outcomes in words.
func (w *world) outcomes(m *rebuild.Mirror, to string, v core.Version, documents ...string) string {
	w.Helper()
	results, err := m.Write(w.Context(), w.documents(to, v, documents...))
	if err != nil || len(results) != len(documents) {
		w.Fatalf("%+v, %v", results, err)
	}
	words := make([]string, len(results))
	for i, r := range results {
		words[i] = r.Outcome.String()
		if r.Outcome == core.OutcomeRejected {
			words[i] = r.Type
		}
	}
	return strings.Join(words, " ")
}

// TestDecidedKinds: an index that was filled after a count rejects values of other kinds in every process: while it is filled, once the alias
// has moved, and in a process that knew the index before. After a rollback the index before takes them again.
func TestDecidedKinds(t *testing.T) {
	w := newWorld(t)
	early, all := rebuild.NewMirror(w.x, w.cells), []string{`{"v":"x"}`, `{"v":1}`, `{"v":"y"}`}
	const some = "indexed " + core.TypeOtherKind + " indexed"
	if got := w.outcomes(early, alias, 1, all...); got != "indexed indexed indexed" {
		t.Errorf("before: %s", got)
	}
	w.ok(w.r.Begin(t.Context(), "job", counts(all...)))
	raw, err := w.x.Mapping(t.Context(), core.NextAlias(alias))
	if got := mapping.RecordedKinds(raw); err != nil || len(got) != 1 || got["v"] != mapping.Keyword {
		t.Errorf("%v are decided, %v", got, err)
	}
	for name, m := range map[string]*rebuild.Mirror{"early": early, "late": rebuild.NewMirror(w.x, w.cells)} {
		if got := w.outcomes(m, core.NextAlias(alias), 2, all...); got != some {
			t.Errorf("filling, %s: %s", name, got)
		}
		if got := w.outcomes(m, alias, 2, all...); got != some {
			t.Errorf("mirrored, %s: %s", name, got)
		}
	}
	w.ok(w.r.Finish(t.Context(), "job"))
	for name, m := range map[string]*rebuild.Mirror{"early": early, "late": rebuild.NewMirror(w.x, w.cells)} {
		if got := w.outcomes(m, alias, 3, all...); got != some {
			t.Errorf("moved, %s: %s", name, got)
		}
		if got := w.outcomes(m, alias, 3, `{"v":1}`, `{"v":{}}`); got != core.TypeOtherKind+" "+core.TypeOtherKind {
			t.Errorf("nothing is left, %s: %s", name, got)
		}
	}
	err = w.r.Rollback(t.Context(), func(context.Context, string) (bool, error) { return true, nil }, func() (string, error) { return "run", nil })
	w.ok(err)
	if got := w.outcomes(early, alias, 4, all...); got != "indexed indexed indexed" {
		t.Errorf("rolled back: %s", got)
	}
}

// TestDecidedAgain: the next rebuild decides anew: from the counts, for what the mapping file and the repository do not say.
func TestDecidedAgain(t *testing.T) {
	w := newWorld(t)
	w.ok(w.r.Begin(t.Context(), "first", counts(`{"v":"x"}`, `{"w":"x"}`, `{"u":"x"}`)))
	if got := w.outcomes(w.mirror, core.NextAlias(alias), 8, `{"v":1}`, `{"v":"x"}`); got != core.TypeOtherKind+" indexed" {
		t.Error(got)
	}
	w.ok(w.r.Finish(t.Context(), "first"))
	var declared mapping.TypesBuilder
	declared.Declare("u", mapping.JSONNumber, "schema")
	types := declared.Types()
	w.r.Use(func() *mapping.Types { return types }, mapping.DefaultLimits())
	w.mapping = json.RawMessage(`{"properties":{"w":{"type":"keyword"}}}`)
	w.ok(w.r.Begin(t.Context(), "second", counts(`{"v":1}`, `{"w":1}`, `{"u":1}`)))
	if got := w.outcomes(w.mirror, core.NextAlias(alias), 8, `{"v":1}`, `{"v":"x"}`); got != "indexed "+core.TypeOtherKind {
		t.Errorf("what the first rebuild had decided is kept: %s", got)
	}
	w.ok(w.r.Finish(t.Context(), "second"))
	raw, err := w.x.Mapping(t.Context(), alias)
	if got := mapping.RecordedKinds(raw); err != nil || len(got) != 1 || got["v"] != mapping.Double {
		t.Errorf("%v are decided, %v", got, err)
	}
	w.x.Declare(alias, types)
	if got := w.outcomes(w.mirror, alias, 9, `{"v":"1"}`, `{"w":1}`, `{"u":1,"v":2}`); got != core.TypeOtherKind+" indexed indexed" {
		t.Error(got)
	}
}

// TestCountsFail: an error of the count is returned, and nothing is created. A count is not repeated once the index exists.
func TestCountsFail(t *testing.T) {
	w := newWorld(t)
	fault := errors.New("no answer")
	if err := w.r.Begin(t.Context(), "job", func(context.Context, func(core.Kinds, int64) string) (core.Kinds, error) { return nil, fault }); !errors.Is(err, fault) {
		t.Errorf("Begin: %v", err)
	}
	w.missing(core.NextAlias(alias))
	w.ok(w.r.Begin(t.Context(), "job", counts(`{"v":1}`)))
	w.ok(w.r.Begin(t.Context(), "job", func(context.Context, func(core.Kinds, int64) string) (core.Kinds, error) { return nil, fault }))
}

// TestDecidedLists: an index is made with the lists of objects that were counted, unless it takes no more of them.
func TestDecidedLists(t *testing.T) {
	for most, want := range map[int]bool{0: false, 1: true} {
		w := newWorld(t)
		limits := mapping.DefaultLimits()
		limits.Nested = most
		w.r.Use(func() *mapping.Types { return nil }, limits)
		w.ok(w.r.Begin(t.Context(), "job", counts(`{"x":{"v":[{"a":1}]}}`)))
		raw, err := w.x.Mapping(t.Context(), core.NextAlias(alias))
		tree, parseErr := mapping.Parse(raw)
		w.ok(errors.Join(err, parseErr))
		if f := tree.Lookup("x.v"); (f != nil && f.Type == mapping.Nested) != want {
			t.Errorf("%d lists: the field is %+v", most, f)
		}
	}
}
