package catalogue

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"time"

	"tutti/internal/search/catalogue/definition"
)

// reloadState is the state of reloading definitions that have, or had, an Err and follow their folders at run time.
type reloadState struct {
	// reread receives the result of Config.Reload; busy is true during the call.
	reread chan []definition.Definition
	busy   bool
	// due is the time of the next reload, tries the number of times the pause has doubled.
	due   time.Time
	tries int
	// seen is the last result, settled the time when it is applied unless it changes before.
	seen    []definition.Definition
	settled time.Time
}

// reload starts a reload in the background if a definition follows its folder and it is due, and returns the time to the next
// one. Nothing waits for it: a folder that hangs must not delay Stop, and its result is then dropped.
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

// adopt applies a reloaded result to the definitions that follow their folders, once it has been unchanged for Config.Settle: a
// file may be incomplete, and the file that restricts a catalogue may be the last one written. If a folder is gone, its catalogue
// is removed; an empty result is ignored.
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

// changes returns the new definitions of the entries whose folders have changed: nil if the folder is gone.
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
		if d != nil && staying[d.ID] { // the ID of a running catalogue is not reassigned
			delete(changes, e)
		}
	}
	return changes
}

// change replaces the changed entries. Results of probes in flight are dropped for the old ones.
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

// follow probes the index of an entry that was fixed, together with others that were.
func (w *watch) follow(e *entry, now time.Time) {
	for _, s := range w.sources {
		if s.index == e.definition.Index && s.began.IsZero() { // no probe yet
			s.entries = append(s.entries, e)
			return
		}
	}
	w.sources = append(w.sources, &source{index: e.definition.Index, entries: []*entry{e}, due: now, answered: true})
}

// backoff returns the pause before the next try, and doubles the following one.
func backoff(tries *int) time.Duration {
	pause := lastRetry
	if *tries < 10 {
		pause = min(firstRetry<<*tries, lastRetry)
	}
	*tries++
	return pause
}
