package consumers_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
)

// TestLostFileWhileTheAliasMoves: a document that only the filled index has is also removed when that index takes the place of the other
// one between the two readings of a record's documents.
func TestLostFileWhileTheAliasMoves(t *testing.T) {
	const id, lost = "A-0000", "A-0000/2"
	in(t, func(t *testing.T, w *world) {
		w.split = threeLess
		w.upstream.fill("A", 5)
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		next := newEngine()
		w.engine.mu.Lock()
		for of, d := range w.engine.docs {
			next.docs[of] = d
			if strings.HasPrefix(of, lost) {
				delete(w.engine.docs, of)
			}
		}
		w.engine.next = next
		w.engine.mu.Unlock()
		next.refuseRefresh = func() error { // which is the first call of the second reading
			w.engine.mu.Lock()
			defer w.engine.mu.Unlock()
			w.engine.docs, w.engine.next = next.docs, nil
			return core.ErrIndexMissing
		}
		w.upstream.edit("A", id, func(r *record) { r.rev = 1 })
		w.index("A", id)
		w.idle()
		if w.engine.next != nil {
			t.Error("the alias was not moved")
		}
		for of := range w.engine.live() {
			if strings.HasPrefix(of, lost) {
				t.Errorf("the index still has %s", of)
			}
		}
	})
}

// TestRejectedFileOfTheFilledIndexOnly: while a rebuild fills another index, that one keeps a file's document whose newer version both
// indices have rejected, when an older reading of its record ends late.
func TestRejectedFileOfTheFilledIndexOnly(t *testing.T) {
	const id, file = "A-0000", "A-0000/1"
	in(t, func(t *testing.T, w *world) {
		w.split = threeLess
		w.upstream.fill("A", 1)
		rejected := core.Result{Outcome: core.OutcomeRejected, Type: "document_parsing_exception"}
		w.engine.item = func(of string, op core.WriteOp, _ []byte) (core.Result, bool) {
			return rejected, of == file && op == core.OpIndex
		}
		next := newEngine()
		next.item = func(of string, _ core.WriteOp, document []byte) (core.Result, bool) {
			return rejected, of == file && strings.Contains(string(document), `"rev":1`)
		}
		w.engine.next = next
		fetched, write := make(chan struct{}), make(chan struct{})
		slow := w.boot(-1)
		w.job(w.run("A", false))
		if _, has := next.live()[file]; !has || len(w.store.dead()) != 1 {
			t.Fatalf("the other index has %v; %d dead letters, want 1", next.live(), len(w.store.dead()))
		}
		first := true
		w.upstream.afterRecord = func(context.Context, string, string) {
			if first {
				first = false
				close(fetched)
				<-write
			}
		}
		w.index("A", id)
		<-fetched
		reconnect := slow.cutOff()
		w.boot(-1)
		w.upstream.edit("A", id, func(r *record) { r.rev = 1 })
		w.index("A", id)
		w.idle()
		close(write)
		eventually(t, "the late write", func() bool { return w.engine.count(core.OutcomeStale) > 0 })
		reconnect()
		w.idle()
		if document := next.live()[file]; !strings.Contains(document, `"rev":0`) {
			t.Errorf("the other index has %q, want the version that it has accepted", document)
		}
	})
}

// TestDocumentsOfTheFilledIndexOnly: while a rebuild fills another index, that one has documents that the repository's index has
// rejected. They follow their records, as the others do.
func TestDocumentsOfTheFilledIndexOnly(t *testing.T) {
	const id = "A-0000"
	for name, c := range map[string]struct {
		only    string // a part of the ids of the documents that the repository's index lacks
		several bool
		change  func(w *world)
		trigger func(w *world)
		want    string // a part of the other index's document afterwards, "" for none
		differs bool   // set if the repository's index still lacks it
	}{
		"lost file": {
			only: id + "/2", several: true,
			change:  func(w *world) { w.upstream.edit("A", id, func(r *record) { r.rev = 1 }) },
			trigger: func(w *world) { w.index("A", id) },
		},
		"lost file in a batch": {
			only: id + "/2", several: true,
			change:  func(w *world) { w.upstream.edit("A", id, func(r *record) { r.rev = 1 }) },
			trigger: func(w *world) { w.indexAll(id) },
		},
		"removed files": {
			only: id, several: true, change: func(*world) {}, trigger: func(w *world) { w.remove("A", id) },
		},
		"moved": {
			only: id, change: func(w *world) { w.upstream.move(id, "B") }, trigger: func(w *world) { w.index("A", id) },
			want: `"studyId":"B"`,
		},
		"moved files": {
			only: id, several: true, change: func(w *world) { w.upstream.move(id, "B") }, trigger: func(w *world) { w.index("A", id) },
			want: `"studyId":"B"`,
		},
		"organization gone": {
			only: id, change: func(w *world) { w.upstream.vanish("A") }, trigger: func(w *world) { w.index("A", id) },
		},
		"removed": {
			only: id, change: func(w *world) { w.upstream.vanish("A") }, trigger: func(w *world) { w.remove("A", id) },
		},
		"of another organization": {
			only: id, change: func(*world) {}, trigger: func(w *world) { w.remove("B", id) },
			want: `"studyId":"A"`, differs: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				if c.several {
					w.split = threeLess
				}
				w.upstream.fill("A", 5)
				w.upstream.fill("B", 1)
				w.boot(-1)
				w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
				next := newEngine()
				w.engine.mu.Lock()
				for of, d := range w.engine.docs {
					next.docs[of] = d
					if strings.HasPrefix(of, c.only) {
						delete(w.engine.docs, of)
					}
				}
				w.engine.next = next
				w.engine.mu.Unlock()
				c.change(w)
				c.trigger(w)
				w.idle()
				var found []string
				for of, source := range next.live() {
					if strings.HasPrefix(of, c.only) {
						found = append(found, source)
					}
				}
				switch {
				case c.want == "" && len(found) > 0, c.want != "" && (len(found) == 0 || !strings.Contains(found[0], c.want)):
					t.Errorf("the other index has %v, want %q", found, c.want)
				case !c.differs:
					if diff := cmp.Diff(w.engine.live(), next.live()); diff != "" {
						t.Errorf("the other index differs (-own +next):\n%.3000s", diff)
					}
				}
			})
		})
	}
}
