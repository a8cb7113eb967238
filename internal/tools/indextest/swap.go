package indextest

import (
	"encoding/json"
	"sync"
	"sync/atomic"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
)

// on returns the sub-test for another alias.
func (s *suite) on(alias string) *suite {
	return &suite{T: s.T, x: s.x, alias: alias, dialect: s.dialect}
}

func (s *suite) swap(spec index.Spec, from string) {
	s.Helper()
	if err := s.x.Swap(s.Context(), spec, from, ""); err != nil {
		s.Fatalf("Swap(%q, %q): %v", spec.Alias, from, err)
	}
}

// mapped returns a spec whose mapping has one field.
func mapped(alias, field string, t mapping.Type) index.Spec {
	return index.Spec{Alias: alias, Mapping: json.RawMessage(`{"dynamic":"false","properties":{"` + field + `":{"type":"` + string(t) + `"}}}`)}
}

// nextOf returns the spec of the index that will replace spec's.
func nextOf(spec index.Spec) index.Spec {
	spec.Replaces, spec.Alias = spec.Alias, core.NextAlias(spec.Alias)
	return spec
}

// testSwap fills three generations of an index, with other mappings, and returns to the second.
func testSwap(s *suite) {
	next, previous := s.on(core.NextAlias(s.alias)), s.on(core.PreviousAlias(s.alias))
	first, second, third := mapped(s.alias, "n", mapping.Keyword), mapped(s.alias, "n", mapping.Long), mapped(s.alias, "n", mapping.Double)
	s.ensureWith(first)
	s.indexed(put("a", 1, `{"n":"one"}`), put("b", 1, `{"n":"b"}`))
	next.ensureWith(nextOf(second))
	next.indexed(put("a", 2, `{"n":2}`))
	s.holds("a", 1, `{"n":"one"}`)
	identity, err := s.x.Identity(s.Context(), next.alias)
	if err != nil || identity == "" {
		s.Fatalf("%q, %v", identity, err)
	}

	s.swap(second, next.alias)
	s.typed(map[string]mapping.Type{"n": mapping.Long})
	s.holds("a", 2, `{"n":2}`)
	s.lacks("b")
	s.counts(1, core.IndexScope{})
	previous.typed(map[string]mapping.Type{"n": mapping.Keyword})
	previous.counts(2, core.IndexScope{})
	s.missing(s.x.Check(s.Context(), next.alias))
	if got, err := s.x.Identity(s.Context(), s.alias); got != identity || err != nil {
		s.Errorf("identity %q, %v after Swap, want %q", got, err, identity)
	}
	s.ensureWith(second)
	s.indexed(put("c", 3, `{"n":3}`))
	previous.lacks("c")

	next.ensureWith(nextOf(third))
	next.indexed(put("a", 4, `{"n":4.5}`))
	s.swap(third, next.alias)
	s.typed(map[string]mapping.Type{"n": mapping.Double})
	s.counts(1, core.IndexScope{})
	previous.typed(map[string]mapping.Type{"n": mapping.Long})
	previous.counts(2, core.IndexScope{})

	s.swap(third, previous.alias)
	s.holds("c", 3, `{"n":3}`)
	s.counts(2, core.IndexScope{})
	previous.holds("a", 4, `{"n":4.5}`)

	for range 2 {
		if err := s.x.Drop(s.Context(), previous.alias, ""); err != nil {
			s.Fatalf("Drop: %v", err)
		}
		s.missing(s.x.Check(s.Context(), previous.alias))
	}
	if err := s.x.Drop(s.Context(), s.alias, identity+"x"); err != nil {
		s.Fatalf("Drop of an index that is gone: %v", err)
	}
	s.holds("c", 3, `{"n":3}`)
	if err := s.x.Drop(s.Context(), s.alias, identity); err != nil {
		s.Fatalf("Drop: %v", err)
	}
	s.ensureWith(first)
	s.lacks("c")
}

// testSwapUnderReads checks that readers always find one of the two indices, and never both.
func testSwapUnderReads(s *suite) {
	spec := index.Spec{Alias: s.alias}
	s.ensureWith(spec)
	s.indexed(put("a", 1, `{}`))
	s.refresh()
	next := s.on(core.NextAlias(s.alias))
	next.ensureWith(nextOf(spec))
	next.indexed(put("a", 2, `{}`), put("b", 2, `{}`))
	next.refresh()
	stop, reads := make(chan struct{}), sync.WaitGroup{}
	for range 3 {
		reads.Go(func() {
			for seen, last := core.Version(0), false; !last; {
				select {
				case <-stop:
					last = true
				default:
				}
				d, found, err := s.x.Get(s.Context(), s.alias, "a")
				if err != nil || !found || d.Version < seen {
					s.Errorf("Get returned version %d, %v, %v after %d", d.Version, found, err, seen)
					return
				}
				seen = d.Version
				if n, err := s.x.Count(s.Context(), s.alias, core.IndexScope{}); err != nil || n < int64(seen) || n > 2 {
					s.Errorf("Count returned %d, %v after version %d", n, err, seen)
					return
				}
				if last && seen != 2 {
					s.Errorf("the last version is %d", seen)
				}
			}
		})
	}
	s.swap(spec, next.alias)
	close(stop)
	reads.Wait()
}

func testSwapMissing(s *suite) {
	spec := index.Spec{Alias: s.alias}
	next := core.NextAlias(s.alias)
	s.missing(s.x.Swap(s.Context(), spec, next, ""))
	s.ensureWith(spec)
	s.indexed(put("a", 1, `{}`))
	s.missing(s.x.Swap(s.Context(), spec, next, ""))
	s.missing(s.x.Swap(s.Context(), spec, core.PreviousAlias(s.alias), ""))
	s.holds("a", 1, `{}`)
}

// testSwapOnce lets several processes move an alias to the index before: one moves it, the others find that it has moved.
func testSwapOnce(s *suite) {
	spec := index.Spec{Alias: s.alias}
	next, previous := s.on(core.NextAlias(s.alias)), s.on(core.PreviousAlias(s.alias))
	s.ensureWith(spec)
	s.indexed(put("a", 1, `{}`))
	next.ensureWith(nextOf(spec))
	if err := s.x.Swap(s.Context(), spec, next.alias, "another"); core.CodeOf(err) != core.CodeConflict {
		s.Errorf("Swap of another index returned %v", err)
	}
	s.holds("a", 1, `{}`)
	s.swap(spec, next.alias)
	identity, err := s.x.Identity(s.Context(), previous.alias)
	if err != nil || identity == "" {
		s.Fatalf("%q, %v", identity, err)
	}
	var moved atomic.Int32
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			if s.x.Swap(s.Context(), spec, previous.alias, identity) == nil {
				moved.Add(1)
			}
		})
	}
	calls.Wait()
	if moved.Load() != 1 {
		s.Errorf("%d calls moved the alias", moved.Load())
	}
	s.holds("a", 1, `{}`)
	previous.lacks("a")
}
