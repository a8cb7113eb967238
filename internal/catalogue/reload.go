package catalogue

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"time"

	"tutti/internal/catalogue/definition"
)

// reloadState is what a watch knows of definitions that have, or had, a Fault, and follow their folders while it runs.
type reloadState struct {
	// reread takes what Config.Reload gave; busy is true while that is awaited.
	reread chan []definition.Definition
	busy   bool
	// due is when to read again, tries how often the pause has doubled.
	due   time.Time
	tries int
	// seen is the last reading, settled when it counts unless another one differs before.
	seen    []definition.Definition
	settled time.Time
}

// reload begins to read the definitions again when one of them follows its folder and it is time, and returns the time to the next
// one. Nobody waits for the end of a reading: a folder that hangs must not hold up a stop, and what it returns then is dropped.
func (w *watch) reload(ctx context.Context, now time.Time) time.Duration {
	m := &w.reloads
	if w.cfg.Reload == nil || m.busy || !slices.ContainsFunc(w.entries, (*entry).follows) {
		return never
	}
	if m.due.IsZero() { // they have just been read
		m.due = now.Add(w.jittered(backoff(&m.tries)))
	}
	if m.due.After(now) {
		return m.due.Sub(now)
	}
	m.busy = true
	go func() {
		defs := w.cfg.Reload()
		select {
		case m.reread <- defs:
		case <-ctx.Done():
		}
	}()
	return never
}

// adopt brings the definitions that follow their folders to what these say now, once they have rested: a file may still be
// written, and the one that restricts a catalogue may be the last. A folder that is gone takes its catalogue along; a reading
// without any says nothing.
func (w *watch) adopt(defs []definition.Definition, now time.Time) {
	m := &w.reloads
	m.busy = false
	if !reflect.DeepEqual(defs, m.seen) {
		m.seen, m.settled = defs, now.Add(w.cfg.Settle)
	}
	changes := w.changes(defs)
	if len(changes) > 0 && now.Before(m.settled) {
		m.due = m.settled
		return
	}
	if len(changes) > 0 {
		m.tries = 0
		w.change(changes, now)
	}
	m.due = now.Add(w.jittered(backoff(&m.tries)))
}

// changes returns what becomes of entries whose folders say something else now: nil where there is no folder any more.
func (w *watch) changes(defs []definition.Definition) map[*entry]*definition.Definition {
	changes := map[*entry]*definition.Definition{}
	if len(defs) == 0 {
		return changes
	}
	staying := map[string]bool{}
	for _, e := range w.entries {
		in := slices.DeleteFunc(slices.Clone(defs), func(d definition.Definition) bool { return d.Folder != e.definition.Folder })
		switch {
		case e.follows() && len(in) == 0:
			changes[e] = nil
		case e.follows() && len(in) == 1 && e.differs(in[0]):
			changes[e] = &in[0]
		default:
			staying[e.definition.ID] = true
		}
	}
	for e, d := range changes {
		if d != nil && staying[d.ID] { // of one that runs, whose id is not taken from it
			delete(changes, e)
		}
	}
	return changes
}

// change puts new entries in the place of those that changed. What is looked at now is told of the old ones in vain.
func (w *watch) change(changes map[*entry]*definition.Definition, now time.Time) {
	var kept []*entry
	for _, e := range w.entries {
		d, changed := changes[e]
		if !changed {
			kept = append(kept, e)
			continue
		}
		e.replaced = true
		w.cfg.Metrics.forget(e.definition.ID)
		if d == nil {
			w.cfg.Logger.Info("the folder of a catalogue is gone", "catalogue", e.definition.ID)
			continue
		}
		next := newEntry(*d)
		next.followed = true
		next.logWarnings(w.cfg.Logger)
		kept = append(kept, next)
		if d.Err == nil {
			w.follow(next, now)
		}
	}
	w.entries = kept
	slices.SortFunc(w.entries, func(a, b *entry) int { return cmp.Compare(a.definition.ID, b.definition.ID) })
	w.publish()
}

// follow looks at the index of an entry that was mended, together with others that were.
func (w *watch) follow(e *entry, now time.Time) {
	for _, s := range w.sources {
		if s.index == e.definition.Index && s.began.IsZero() { // nobody reads it yet
			s.entries = append(s.entries, e)
			return
		}
	}
	w.sources = append(w.sources, &source{index: e.definition.Index, entries: []*entry{e}, due: now, answered: true})
}

// backoff returns the pause before the next try, and doubles the one after it.
func backoff(tries *int) time.Duration {
	pause := lastRetry
	if *tries < 10 {
		pause = min(firstRetry<<*tries, lastRetry)
	}
	*tries++
	return pause
}
