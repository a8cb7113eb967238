package metadata_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/metadata"
	"tutti/internal/store"
	"tutti/internal/tools/storetest"
)

func allStates() []datamodel.AnalysisState {
	return []datamodel.AnalysisState{datamodel.StateUnpublished, datamodel.StatePublished, datamodel.StateSuppressed}
}

func TestPublish(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		id := w.submit("a")
		before := w.body(id)
		w.set(id, datamodel.StatePublished)
		after := w.body(id)
		at := gjson.Get(after, "publishedAt").Str
		wantEqual(t, after, `{"analysisId":"`+id+`","studyId":"`+S+`","analysisState":"PUBLISHED","createdAt":"`+
			gjson.Get(before, "createdAt").Str+`","updatedAt":"`+at+`","firstPublishedAt":"`+at+`","publishedAt":"`+at+
			`","analysisStateHistory":[{"initialState":"UNPUBLISHED","updatedState":"PUBLISHED","updatedAt":"`+at+`"}],`+
			after[len(after)-len(before)+indexOf(before, `"analysisType"`):])
		wantEqual(t, len(w.drain()), 1)

		w.set(id, datamodel.StatePublished) // no change, but an event that repairs the index
		wantEqual(t, w.body(id), after)
		wantEqual(t, len(w.drain()), 1)

		w.set(id, datamodel.StateUnpublished)
		wantEqual(t, w.get(id, "publishedAt"), at)
		wantEqual(t, len(w.drain()), 1)
		w.set(id, datamodel.StateUnpublished)
		wantEqual(t, w.pending(), 0)

		w.set(id, datamodel.StatePublished)
		wantEqual(t, w.get(id, "firstPublishedAt"), at)
		if w.get(id, "publishedAt") <= at {
			t.Error("publishedAt did not grow")
		}
		wantEqual(t, w.get(id, "analysisStateHistory.#"), "3")
	})
}

func indexOf(text, part string) int {
	for i := range len(text) - len(part) {
		if text[i:i+len(part)] == part {
			return i
		}
	}
	return -1
}

func TestSuppressedIsFinal(t *testing.T) {
	const message = "the analysis is suppressed, which is final"
	on(t, func(t *testing.T, w *fixture) {
		id := w.submit("a")
		w.set(id, datamodel.StatePublished)
		w.set(id, datamodel.StateSuppressed)
		wantEqual(t, len(w.drain()), 2)
		body := w.body(id)
		for name, err := range map[string]error{
			"publish":   w.SetState(t.Context(), S, id, datamodel.StatePublished, false),
			"unpublish": w.SetState(t.Context(), S, id, datamodel.StateUnpublished, false),
			"replace":   w.Replace(t.Context(), S, id, []byte(payload("b"))),
			"merge":     w.Merge(t.Context(), S, id, []byte(`{"x":1}`)),
		} {
			t.Run(name, func(t *testing.T) { wantError(t, err, core.CodeConflict, "suppressed.state.transition", message) })
		}
		if err := w.SetState(t.Context(), S, id, datamodel.StateSuppressed, false); err != nil {
			t.Error("suppressing again:", err)
		}
		wantEqual(t, w.body(id), body)
		wantEqual(t, w.pending(), 0)

		unpublished := w.submit("b")
		w.set(unpublished, datamodel.StateSuppressed)
		wantEqual(t, w.pending(), 0)
	})
}

func TestSetStateRefusesNoState(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		err := w.SetState(t.Context(), S, w.submit("a"), "published", false)
		wantError(t, err, core.CodeInvalid, "malformed.parameter", "the state must be UNPUBLISHED, PUBLISHED or SUPPRESSED")
	})
}

// TestIndexedStates: when unpublished analyses are indexed too, a submission writes an event.
func TestIndexedStates(t *testing.T) {
	cfg := metadata.Config{IndexedStates: []datamodel.AnalysisState{datamodel.StatePublished, datamodel.StateUnpublished}}
	onWith(t, cfg, func(t *testing.T, w *fixture) {
		id := w.submit("a")
		select {
		case <-w.Changed():
		default:
			t.Error("no signal")
		}
		events := w.drain()
		if len(events) != 1 || events[0].AnalysisID != id {
			t.Errorf("events %+v", events)
		}
	})
}

// TestChanged: changes with an event are signalled, several by one signal, other changes are not.
func TestChanged(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		signals := func() (n int) {
			for {
				select {
				case <-w.Changed():
					n++
				default:
					return n
				}
			}
		}
		id := w.submit("a")
		wantEqual(t, signals(), 0)
		w.set(id, datamodel.StatePublished)
		w.set(id, datamodel.StateUnpublished)
		wantEqual(t, signals(), 1)
		w.set(id, datamodel.StateUnpublished)
		wantEqual(t, signals(), 0)
	})
}

// TestClockSetBack: the times of an analysis grow even when the clock goes back.
func TestClockSetBack(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		id := w.submit("a")
		created := w.get(id, "updatedAt")
		back := newFixture(t, w.store, metadata.Config{Now: (&clock{}).Now})
		for i := range 3 {
			if err := back.Merge(t.Context(), S, id, fmt.Appendf(nil, `{"m":%d}`, i)); err != nil {
				t.Fatal(err)
			}
			if now := w.get(id, "updatedAt"); now <= created {
				t.Fatalf("%s after %s", now, created)
			} else {
				created = now
			}
		}
	})
}

// TestConcurrentStates: concurrent state changes are each applied once, in some order.
func TestConcurrentStates(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		id := w.submit("a")
		var group sync.WaitGroup
		for i := range 20 {
			group.Go(func() {
				if err := w.SetState(t.Context(), S, id, allStates()[i%2], false); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		state := "UNPUBLISHED"
		for _, change := range gjson.Get(w.body(id), "analysisStateHistory").Array() {
			wantEqual(t, change.Get("initialState").Str, state)
			state = change.Get("updatedState").Str
		}
		wantEqual(t, w.get(id, "analysisState"), state)
	})
}

// model is the expected state of one analysis.
type model struct {
	id      string
	state   datamodel.AnalysisState
	value   int
	history int
}

// TestModel: after random operations the analyses equal the model, and the outbox has exactly the events of changes that affect
// the index.
func TestModel(t *testing.T) {
	storetest.Databases(t, func(t *testing.T, s *store.Store) {
		w := newFixture(t, s, metadata.Config{})
		count := 0
		rapid.Check(t, func(rt *rapid.T) {
			w.drain()
			var all []*model
			events := 0
			indexed := func(states ...datamodel.AnalysisState) {
				if slices.Contains(states, datamodel.StatePublished) {
					events++
				}
			}
			rt.Repeat(map[string]func(*rapid.T){
				"submit": func(*rapid.T) {
					count++
					all = append(all, &model{id: w.submit(fmt.Sprintf("model-%d", count)), state: datamodel.StateUnpublished})
				},
				"state": func(rt *rapid.T) {
					if len(all) == 0 {
						rt.Skip()
					}
					m, to := rapid.SampledFrom(all).Draw(rt, "analysis"), rapid.SampledFrom(allStates()).Draw(rt, "state")
					err := w.SetState(t.Context(), S, m.id, to, false)
					if refused := m.state == datamodel.StateSuppressed && to != m.state; refused != (err != nil) {
						rt.Fatalf("%s to %s: %v", m.state, to, err)
					}
					if err != nil {
						return
					}
					indexed(m.state, to)
					if m.state != to {
						m.history++
					}
					m.state = to
				},
				"change": func(rt *rapid.T) {
					if len(all) == 0 {
						rt.Skip()
					}
					m := rapid.SampledFrom(all).Draw(rt, "analysis")
					value := rapid.IntRange(0, 99).Draw(rt, "value")
					err := w.Merge(t.Context(), S, m.id, fmt.Appendf(nil, `{"value":%d}`, value))
					if (m.state == datamodel.StateSuppressed) != (err != nil) {
						rt.Fatalf("%s: %v", m.state, err)
					}
					if err == nil {
						m.value = value
						indexed(m.state)
					}
				},
				"relay": func(rt *rapid.T) {
					if got := len(w.drain()); got != events {
						rt.Fatalf("%d events, want %d", got, events)
					}
					events = 0
				},
				"": func(rt *rapid.T) {
					for _, m := range all {
						body := w.body(m.id)
						got := model{
							id: m.id, state: datamodel.AnalysisState(gjson.Get(body, "analysisState").Str), value: int(gjson.Get(body, "value").Int()),
							history: len(gjson.Get(body, "analysisStateHistory").Array()),
						}
						if got != *m {
							rt.Fatalf("got %+v, want %+v", got, *m)
						}
					}
				},
			})
		})
	})
}

// TestPublishChecksTheVersion: an unpublished analysis is published only with a version that the validator accepts; what is published
// stays, and publishing it again repairs the index.
func TestPublishChecksTheVersion(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		id, published := w.submit("a"), w.submit("b")
		w.set(published, datamodel.StatePublished)
		w.drain()
		w.validator.latest = 4
		before := w.body(id)
		err := w.SetState(t.Context(), S, id, datamodel.StatePublished, false)
		wantError(t, err, core.CodeConflict, "analysis.type.incorrect.version", "not the latest")
		wantEqual(t, w.body(id), before)
		wantEqual(t, w.pending(), 0)
		w.set(published, datamodel.StatePublished)
		wantEqual(t, len(w.drain()), 1)
		w.set(id, datamodel.StateSuppressed)
	})
}
