package consumers_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"tutti/internal/core"
)

// errLostIndex is the error of an engine for an index that was deleted.
var errLostIndex = core.WrapError(core.CodeIndexBlocked, "there is no alias analyses", core.ErrIndexMissing)

// TestLostIndex: an index that is deleted while processes run is recreated, once, and its repository run again, once, so
// that the index becomes equal to the upstream; also where no write notices the loss.
func TestLostIndex(t *testing.T) {
	for _, tt := range []struct {
		name   string
		amid   bool // a run
		others int
	}{{"amid a run", true, 0}, {"amid a run of several processes", true, 2}, {"idle", false, 0}, {"idle, several processes", false, 2}} {
		t.Run(tt.name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.fill("A", 500)
				w.upstream.fill("B", 50)
				batches := 0
				if tt.amid {
					w.engine.hold = func(context.Context, core.Batch) error {
						w.engine.mu.Lock()
						defer w.engine.mu.Unlock()
						if batches++; batches == 3 {
							w.engine.lose()
						}
						return nil
					}
				}
				processes := []*process{w.boot(-1)}
				for range tt.others {
					processes = append(processes, w.boot(-1))
				}
				id := w.run("", false)
				if !tt.amid {
					w.ended(w.job(id), core.JobSucceeded, "")
					w.verify()
					w.engine.mu.Lock()
					w.engine.lose()
					w.engine.mu.Unlock()
				}
				within(t, time.Minute, "the pause", func() bool {
					// A process that writes nothing in these two seconds does not notice the loss.
					return slices.ContainsFunc(processes, func(p *process) bool {
						paused := p.c.Paused()
						return len(paused) == 1 && paused[0].Index && paused[0].Reason == core.MessageOf(errLostIndex)
					})
				})
				within(t, time.Minute, "the run", func() bool { return w.reruns.Load() > 0 })
				w.ended(w.job(id), core.JobSucceeded, "")
				w.idle()
				w.verify()
				eventually(t, "the end of the pause", func() bool {
					return !slices.ContainsFunc(processes, func(p *process) bool { return len(p.c.Paused()) > 0 })
				})
				if w.engine.made != 1 || w.reruns.Load() != 1 {
					t.Errorf("made %d times, run %d times", w.engine.made, w.reruns.Load())
				}
			})
		})
	}
}

// TestIndexMissingForAMoment: an alias that is swapped in two steps is missing for a moment, and a closed index exists.
// Neither is recreated. The alias may name another index afterwards, so that one is prepared.
func TestIndexMissingForAMoment(t *testing.T) {
	for name, tt := range map[string]struct {
		err      error
		takes    time.Duration
		prepared int
	}{
		"a swap":         {errLostIndex, time.Second, 4},
		"a closed index": {errBlocked, time.Hour, 1},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.fill("A", 50)
				p := w.boot(-1)
				w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
				for range 3 {
					w.engine.setDown(tt.err)
					w.index("A", "A-0000")
					eventually(t, "the pause", func() bool { return len(p.c.Paused()) == 1 })
					time.Sleep(tt.takes)
					w.engine.setDown(nil)
					w.idle()
				}
				if w.engine.made != 0 || w.reruns.Load() != 0 || w.engine.prepared != tt.prepared {
					t.Errorf("made %d times, run %d times, prepared %d times", w.engine.made, w.reruns.Load(), w.engine.prepared)
				}
			})
		})
	}
}

// TestIndexMissingTwiceForAMoment: the two seconds start again after a check with another error.
func TestIndexMissingTwiceForAMoment(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 50)
		p := w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		fails := func(err error) {
			w.engine.mu.Lock()
			checks := w.engine.checks
			w.engine.down = err
			w.engine.mu.Unlock()
			eventually(t, "a check", func() bool {
				w.engine.mu.Lock()
				defer w.engine.mu.Unlock()
				return w.engine.checks > checks
			})
		}
		fails(errLostIndex)
		for range 5 {
			fails(errBlocked)
		}
		fails(errLostIndex)
		w.engine.setDown(nil)
		eventually(t, "the end of the pause", func() bool { return len(p.c.Paused()) == 0 })
		if w.engine.made != 0 || w.reruns.Load() != 0 {
			t.Errorf("made %d times, run %d times", w.engine.made, w.reruns.Load())
		}
	})
}

// TestLostIndexQueuesRunFirst: no index is created before the run is stored in the queue; otherwise a crash between the two
// would lose the run.
func TestLostIndexQueuesRunFirst(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 50)
		var refuses atomic.Bool
		w.onPublish = func(core.Request) error {
			if !refuses.Load() {
				return nil
			}
			w.engine.mu.Lock()
			defer w.engine.mu.Unlock()
			if w.engine.made > 0 {
				t.Error("made before the run was stored")
			}
			return unavailable("the queue does not answer")
		}
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		refuses.Store(true)
		w.engine.mu.Lock()
		w.engine.lose()
		w.engine.mu.Unlock()
		time.Sleep(time.Minute)
		refuses.Store(false)
		eventually(t, "the run", func() bool { return w.reruns.Load() > 0 })
		w.idle()
		w.verify()
	})
}

// TestLostIndexWithFullQueue: a full queue takes no run, and drains only into an index: the index is created first, and the
// run is queued once there is room.
func TestLostIndexWithFullQueue(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 50)
		var full atomic.Bool
		w.onPublish = func(core.Request) error {
			if full.Load() {
				return core.NewError(core.CodeOverloaded, "the queue is full")
			}
			return nil
		}
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		full.Store(true)
		w.engine.mu.Lock()
		w.engine.lose()
		w.engine.mu.Unlock()
		time.Sleep(time.Minute)
		w.engine.mu.Lock()
		made := w.engine.made
		w.engine.mu.Unlock()
		if made != 1 {
			t.Errorf("made %d times beside a full queue", made)
		}
		full.Store(false)
		eventually(t, "the run", func() bool { return w.reruns.Load() > 0 })
		w.idle()
		w.verify()
	})
}

// TestReplacedIndex: an index that another process recreated is empty. Its identity, which is stored in the queue, reveals
// that, also when no process found it missing, and the repository is run again, once.
func TestReplacedIndex(t *testing.T) {
	for name, replace := range map[string]func(w *world, p *process){
		"between two checks": func(w *world, _ *process) { w.engine.replace() },
		"while no process runs": func(w *world, p *process) {
			if err := p.stop(w.t, time.Minute); err != nil {
				w.t.Error(err)
			}
			w.engine.replace()
			w.boot(-1)
		},
		"by a process that starts": func(w *world, p *process) {
			w.engine.mu.Lock()
			w.engine.lose()
			w.engine.mu.Unlock()
			w.index("A", "A-0000")
			eventually(w.t, "the pause", func() bool { return len(p.c.Paused()) == 1 })
			w.boot(-1)
		},
		"beside several processes": func(w *world, _ *process) {
			w.boot(-1)
			w.boot(-1)
			w.engine.replace()
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.fill("A", 50)
				p := w.boot(-1)
				w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
				replace(w, p)
				within(t, time.Minute, "the run", func() bool { return w.reruns.Load() > 0 })
				w.idle()
				w.verify()
				time.Sleep(2 * time.Minute)
				w.boot(-1)
				time.Sleep(2 * time.Minute)
				if got := w.reruns.Load(); got != 1 {
					t.Errorf("run %d times", got)
				}
			})
		})
	}
}

// TestReplacedIndexQueuesRunBeforeIdentity: the identity of the new index is stored after the run, so that the next check
// queues a run that the queue did not take, and after a crash in between the next process does. The index takes writes in
// between: a full queue drains.
func TestReplacedIndexQueuesRunBeforeIdentity(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 50)
		var refuses atomic.Bool
		var refused atomic.Int64
		w.onPublish = func(core.Request) error {
			if !refuses.Load() {
				return nil
			}
			refused.Add(1)
			return unavailable("the queue does not answer")
		}
		p := w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		refuses.Store(true)
		w.engine.replace()
		eventually(t, "the second try", func() bool { return refused.Load() > 1 })
		if len(p.c.Paused()) > 0 {
			t.Errorf("paused: %v", p.c.Paused())
		}
		p.crash()
		refuses.Store(false)
		w.boot(-1)
		eventually(t, "the run", func() bool { return w.reruns.Load() > 0 })
		w.idle()
		w.verify()
	})
}

// TestFirstIdentity: the first process that sees an index stores its identity, and queues no run.
func TestFirstIdentity(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.seed("A", 5)
		for range 2 {
			p := w.boot(-1)
			time.Sleep(2 * time.Minute)
			if err := p.stop(t, time.Minute); err != nil {
				t.Error(err)
			}
		}
		if got := w.reruns.Load(); got != 0 || w.engine.preparedFrom != "index-0" {
			t.Errorf("run %d times, prepared from %q", got, w.engine.preparedFrom)
		}
	})
}

// TestOtherIndices: an alias that stands for several indices or an unsuitable one for a while pauses the processes, and once it stands for one
// of them, the same as before, the repository is run again, also by a process that was started in between: writes may have gone to another one.
func TestOtherIndices(t *testing.T) {
	several := &core.Error{Code: core.CodeConflict, Message: "the alias analyses has more than one index: one, two", Err: core.ErrAliasSeveral}
	unsuitable := &core.Error{Code: core.CodeConflict, Message: "the index one cannot be used", Err: core.ErrIndexUnsuitable}
	for name, tt := range map[string]struct {
		other   *core.Error
		restart bool
	}{
		"several, running": {several, false}, "several, restarted": {several, true},
		"unsuitable, running": {unsuitable, false}, "unsuitable, restarted": {unsuitable, true},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.fill("A", 50)
				p := w.boot(-1)
				w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
				w.engine.setDown(tt.other)
				paused := func() bool {
					now := p.c.Paused()
					return len(now) == 1 && now[0].Index && now[0].Reason == core.MessageOf(tt.other)
				}
				within(t, time.Minute, "the pause", paused) // of an idle process
				if tt.restart {
					p.crash()
					p = w.boot(-1)
					within(t, time.Minute, "the pause", paused)
				}
				w.engine.setDown(nil)
				within(t, time.Minute, "the run", func() bool { return w.reruns.Load() > 0 })
				w.idle()
				w.verify()
				if w.engine.made != 0 || w.reruns.Load() != 1 || len(p.c.Paused()) != 0 {
					t.Errorf("made %d times, run %d times, paused: %v", w.engine.made, w.reruns.Load(), p.c.Paused())
				}
			})
		})
	}
}
