package metadata_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/metadata"
	"tutti/internal/tools/storetest"
)

func published() []datamodel.AnalysisState {
	return []datamodel.AnalysisState{datamodel.StatePublished}
}

// page returns the ids of a page and checks that each row is complete.
func (w *fixture) page(offset, limit int, states ...datamodel.AnalysisState) ([]string, core.PageInfo) {
	w.t.Helper()
	var ids []string
	info, err := w.Page(w.t.Context(), S, states, offset, limit, func(a datamodel.Analysis) error {
		doc := gjson.ParseBytes(a.Body)
		if doc.Get("analysisId").Str != a.ID || doc.Get("analysisState").Str != string(a.State) || a.Study != S {
			w.t.Errorf("row %s %s: %s", a.ID, a.State, a.Body)
		}
		if len(states) > 0 && !slices.Contains(states, a.State) {
			w.t.Errorf("row %s is %s", a.ID, a.State)
		}
		ids = append(ids, a.ID)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if info.Rows != len(ids) {
		w.t.Errorf("%d rows, but the page says %d", len(ids), info.Rows)
	}
	return ids, info
}

func TestPage(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		ids := w.published(10)
		w.set(ids[3], datamodel.StateUnpublished)
		w.set(ids[7], datamodel.StateSuppressed)
		pub := slices.Concat(ids[:3], ids[4:7], ids[8:])
		tests := []struct {
			name          string
			states        []datamodel.AnalysisState
			offset, limit int
			want          []string
			total         int
		}{
			{"all", published(), 0, 0, pub, 8},
			{"none named", nil, 0, 0, pub, 8},
			{"first", published(), 0, 3, pub[:3], 8},
			{"cold offset", published(), 4, 2, pub[4:6], 8},
			{"all from an offset", published(), 5, 0, pub[5:], 8},
			{"short", published(), 6, 9, pub[6:], 8},
			{"beyond the end", published(), 8, 5, nil, 8},
			{"far beyond the end", published(), 1 << 40, 0, nil, 8},
			{"two states", []datamodel.AnalysisState{datamodel.StateUnpublished, datamodel.StatePublished}, 2, 3, ids[2:5], 9},
			{"two states, one twice", []datamodel.AnalysisState{datamodel.StateSuppressed, datamodel.StateUnpublished, datamodel.StateSuppressed}, 0, 5, []string{ids[3], ids[7]}, 2},
			{"every state", allStates(), 3, 5, ids[3:8], 10},
			{"suppressed", []datamodel.AnalysisState{datamodel.StateSuppressed}, 0, 5, ids[7:8], 1},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				got, info := w.page(tt.offset, tt.limit, tt.states...)
				wantEqual(t, got, tt.want)
				wantEqual(t, info.Total, tt.total)
			})
		}
	})
}

func TestPageRefuses(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		tests := []struct {
			name, study   string
			states        []datamodel.AnalysisState
			offset, limit int
			code          core.Code
			id, message   string
		}{
			{"unknown study", "none", published(), 0, 5, core.CodeNotFound, "study.id.does.not.exist", "the study does not exist"},
			{"unknown study, offset", "none", published(), 3, 5, core.CodeNotFound, "study.id.does.not.exist", "the study does not exist"},
			{"NUL", "\x00", published(), 0, 0, core.CodeNotFound, "study.id.does.not.exist", "the study does not exist"},
			{
				"state", S,
				[]datamodel.AnalysisState{"published"},
				0, 5, core.CodeInvalid, "malformed.parameter",
				"a state must be UNPUBLISHED, PUBLISHED or SUPPRESSED",
			},
			{
				"offset", S, published(), -1, 5, core.CodeInvalid, "malformed.parameter",
				"the offset and the limit of a page must not be negative",
			},
			{
				"limit", S, published(), 0, -1, core.CodeInvalid, "malformed.parameter",
				"the offset and the limit of a page must not be negative",
			},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				_, err := w.Page(t.Context(), tt.study, tt.states, tt.offset, tt.limit, func(datamodel.Analysis) error { return nil })
				wantError(t, err, tt.code, tt.id, tt.message)
			})
		}
		ids, info := w.page(0, 5, datamodel.StatePublished)
		if ids != nil || info.Total != 0 {
			t.Error("an empty study has rows:", ids, info)
		}
	})
}

// TestPageEachEnds: an error of the callback ends the page and is returned unchanged.
func TestPageEachEnds(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		w.published(5)
		enough := errors.New("enough")
		calls := 0
		info, err := w.Page(t.Context(), S, nil, 0, 0, func(datamodel.Analysis) error {
			if calls++; calls == 3 {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) || calls != 3 || info.Rows != 2 {
			t.Error(err, calls, info)
		}
	})
}

// TestPageCallbackWrites: the callback may write to the repository: no transaction is open.
func TestPageCallbackWrites(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		w.published(5)
		_, err := w.Page(t.Context(), S, nil, 0, 0, func(a datamodel.Analysis) error {
			return w.SetState(t.Context(), S, a.ID, datamodel.StateUnpublished, false)
		})
		if err != nil {
			t.Fatal(err)
		}
		_, info := w.page(0, 0)
		wantEqual(t, info.Total, 0)
	})
}

// TestTotalAfterOwnChange: after a change the caller sees the list's new length at once.
func TestTotalAfterOwnChange(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		ids := w.published(10)
		for i := range 3 {
			_, info := w.page(0, 2, datamodel.StatePublished)
			wantEqual(t, info.Total, 10-i)
			w.set(ids[i], datamodel.StateUnpublished)
		}
	})
}

// TestPageAllInChunks: limit 0 returns all rows, also more rows and bytes than one chunk.
func TestPageAllInChunks(t *testing.T) {
	w := newFixture(t, storetest.Open(t), metadata.Config{})
	ids := w.published(700)
	big := strings.Repeat("x", 3<<20)
	for _, i := range []int{0, 1, 63, 64, 65, 300, 699} {
		if err := w.Merge(t.Context(), S, ids[i], []byte(`{"big":"`+big+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
	got, info := w.page(0, 0)
	wantEqual(t, got, ids)
	wantEqual(t, info.Total, 700)
	got, _ = w.page(1, 698)
	wantEqual(t, got, ids[1:699])
}

// readers are the ways in which clients page: each returns the rows that it has seen, in order.
var readers = map[string]func(w *fixture, limit int, between func(read int)) []string{
	"one after the other": func(w *fixture, limit int, between func(int)) (seen []string) {
		for offset := 0; ; {
			ids, info := w.page(offset, limit, datamodel.StatePublished)
			seen = append(seen, ids...)
			offset += len(ids)
			if offset >= info.Total || len(ids) == 0 {
				return seen
			}
			between(offset)
		}
	},
	"overlapping by a row": func(w *fixture, limit int, between func(int)) (seen []string) {
		for offset := 0; ; {
			ids, info := w.page(offset, limit, datamodel.StatePublished)
			end := offset + len(ids)
			if len(seen) > 0 && len(ids) > 0 && ids[0] == seen[len(seen)-1] {
				ids = ids[1:]
			}
			seen = append(seen, ids...)
			if end >= info.Total || len(ids) == 0 {
				return seen
			}
			offset = end - 1
			between(end)
		}
	},
}

// TestPagingWhileChanging: whichever rows leave or join the list between two pages, a reader sees each remaining row once.
func TestPagingWhileChanging(t *testing.T) {
	changes := map[string]func(w *fixture, ids []string, read int){
		"nothing": func(*fixture, []string, int) {},
		"rows before leave": func(w *fixture, ids []string, read int) {
			w.set(ids[read-4], datamodel.StateUnpublished)
			w.set(ids[0], datamodel.StateUnpublished)
		},
		"most rows before leave at once": func(w *fixture, ids []string, read int) {
			for _, id := range ids[:read-1] {
				w.set(id, datamodel.StateUnpublished)
			}
		},
		"rows behind leave": func(w *fixture, ids []string, read int) {
			if read+2 < len(ids) {
				w.set(ids[read+2], datamodel.StateUnpublished)
			}
		},
		"rows before join": func(w *fixture, ids []string, read int) {
			w.set(ids[read-4], datamodel.StateUnpublished)
			w.set(ids[read-5], datamodel.StatePublished)
		},
		"rows join at the end": func(w *fixture, _ []string, read int) {
			if read < 40 {
				w.set(w.submit(fmt.Sprint("new", read, w.t.Name())), datamodel.StatePublished)
			}
		},
	}
	for reader, read := range readers {
		for change, do := range changes {
			t.Run(reader+"/"+change, func(t *testing.T) {
				on(t, func(t *testing.T, w *fixture) {
					ids := w.published(33)
					left := map[string]bool{}
					seen := read(w, 10, func(n int) {
						do(w, ids, min(n, len(ids)))
						left = map[string]bool{}
						for _, id := range ids {
							left[id] = w.get(id, "analysisState") != "PUBLISHED"
						}
					})
					counted := map[string]int{}
					for _, id := range seen {
						counted[id]++
					}
					for _, id := range ids {
						if counted[id] > 1 || counted[id] == 0 && !left[id] {
							t.Errorf("row %d was seen %d times", slices.Index(ids, id), counted[id])
						}
					}
				})
			})
		}
	}
}

// TestPageOfCurrentList: offset 0 and any offset where no page ended refer to the current list.
func TestPageOfCurrentList(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		ids := w.published(20)
		w.page(0, 5, datamodel.StatePublished)
		w.set(ids[0], datamodel.StateUnpublished)
		first, _ := w.page(0, 4, datamodel.StatePublished)
		wantEqual(t, first, ids[1:5])
		second, _ := w.page(4, 4, datamodel.StatePublished)
		wantEqual(t, second, ids[5:9])
		cold, info := w.page(10, 2, datamodel.StatePublished)
		wantEqual(t, cold, ids[11:13])
		wantEqual(t, info.Total, 19)
		other, _ := w.page(4, 2, datamodel.StatePublished, datamodel.StateUnpublished)
		wantEqual(t, other, ids[4:6])
	})
}

// TestCursorsExpire: a cursor expires after half a minute.
func TestCursorsExpire(t *testing.T) {
	now := time.Now()
	var mu sync.Mutex
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	pass := func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(d)
	}
	w := newFixture(t, storetest.Open(t), metadata.Config{Now: clock})
	ids := w.published(20)
	w.page(0, 5, datamodel.StatePublished)
	w.set(ids[0], datamodel.StateUnpublished)
	kept, _ := w.page(5, 5, datamodel.StatePublished)
	wantEqual(t, kept, ids[5:10])
	pass(29 * time.Second)
	kept, _ = w.page(5, 5, datamodel.StatePublished)
	wantEqual(t, kept, ids[5:10])
	pass(time.Second)
	aged, _ := w.page(5, 5, datamodel.StatePublished)
	wantEqual(t, aged, ids[6:11])
}

// TestCursorsAreBounded: the number of cached cursors is bounded.
func TestCursorsAreBounded(t *testing.T) {
	w := newFixture(t, storetest.Open(t), metadata.Config{})
	seed(t, w.store, 4500)
	for offset := range 4400 {
		w.page(offset, 1, datamodel.StatePublished)
	}
	wantEqual(t, w.CachedCursors(), 4096)
}

// TestTotalIsCountedAtTheEnd: a count may be a second old, but never where it would make a reader stop.
func TestTotalIsCountedAtTheEnd(t *testing.T) {
	now := time.Now()
	w := newFixture(t, storetest.Open(t), metadata.Config{Now: func() time.Time { return now }}) // a stopped clock
	w.published(10)
	_, info := w.page(0, 4, datamodel.StatePublished)
	wantEqual(t, info.Total, 10)
	w.set(w.submit("new"), datamodel.StatePublished)
	_, info = w.page(4, 4, datamodel.StatePublished)
	wantEqual(t, info.Total, 10)
	_, info = w.page(8, 2, datamodel.StatePublished)
	wantEqual(t, info.Total, 11)
	_, info = w.page(10, 2, datamodel.StatePublished)
	wantEqual(t, info, core.PageInfo{Rows: 1, Total: 11})
}

// TestTotalOfReader: a reader within the list and a new reader see different totals.
func TestTotalOfReader(t *testing.T) {
	now := time.Now()
	w := newFixture(t, storetest.Open(t), metadata.Config{Now: func() time.Time { return now }})
	ids := w.published(10)
	other := newFixture(t, w.store, metadata.Config{})
	w.page(0, 4, datamodel.StatePublished)
	other.set(ids[0], datamodel.StateUnpublished)
	other.set(ids[1], datamodel.StateUnpublished)
	now = now.Add(2 * time.Second)
	_, info := w.page(4, 4, datamodel.StatePublished)
	wantEqual(t, info.Total, 10)
	_, info = w.page(0, 4, datamodel.StatePublished)
	wantEqual(t, info.Total, 8)
}

// TestPageCancelled: the end of the context ends a page.
func TestPageCancelled(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		w.published(2)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := w.Page(ctx, S, nil, 0, 0, func(datamodel.Analysis) error { return nil })
		if core.CodeOf(err) != core.CodeUnavailable {
			t.Error(err)
		}
	})
}
