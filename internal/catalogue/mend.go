package catalogue

import (
	"cmp"
	"context"
	"slices"
	"time"

	"tutti/internal/catalogue/definition"
)

// mending is what a watch knows of definitions that have a Fault and may be mended while it runs.
type mending struct {
	// reread takes what Config.Reload gave; busy is true while that is awaited.
	reread chan []definition.Definition
	busy   bool
	// due is when to read again, tries how often the pause has doubled.
	due   time.Time
	tries int
}

// reload begins to read the definitions again when one of them has a Fault and it is time, and gives the time to the next one.
func (w *watch) reload(ctx context.Context, now time.Time) time.Duration {
	m := &w.mending
	faulty := func(e *entry) bool { return e.definition.Fault != nil }
	if w.cfg.Reload == nil || m.busy || !slices.ContainsFunc(w.entries, faulty) {
		return never
	}
	if m.due.IsZero() { // they have just been read
		m.due = now.Add(w.jittered(backoff(&m.tries)))
	}
	if m.due.After(now) {
		return m.due.Sub(now)
	}
	m.busy = true
	w.looks.Go(func() {
		defs := w.cfg.Reload()
		select {
		case m.reread <- defs:
		case <-ctx.Done():
		}
	})
	return never
}

// adopt takes the definitions that were mended, or have another Fault now, by their folders. Those without a Fault keep their
// ids: one that wants an id of theirs stays as it is.
func (w *watch) adopt(defs []definition.Definition, now time.Time) {
	changed := false
	for _, e := range w.entries {
		if e.definition.Fault == nil {
			continue
		}
		if d, found := inFolder(defs, e.definition.Folder); found && !sameFault(d, e.definition) && !w.taken(d.ID, e) {
			w.replace(e, d, now)
			changed = true
		}
	}
	m := &w.mending
	m.busy = false
	if changed {
		m.tries = 0
		slices.SortFunc(w.entries, func(a, b *entry) int { return cmp.Compare(a.definition.ID, b.definition.ID) })
		w.publish()
	}
	m.due = now.Add(w.jittered(backoff(&m.tries)))
}

// replace gives an entry another definition. One without a Fault is looked at at once.
func (w *watch) replace(e *entry, d definition.Definition, now time.Time) {
	w.cfg.Metrics.forget(e.definition.ID)
	e.definition, e.told, e.warned = d, false, nil
	e.catalogue = failed(d, unanswered())
	e.tell(w.cfg.Logger)
	if d.Fault == nil {
		w.follow(e, now)
	}
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

// taken tells whether another catalogue has an id.
func (w *watch) taken(id string, by *entry) bool {
	return slices.ContainsFunc(w.entries, func(e *entry) bool { return e != by && e.definition.ID == id })
}

// inFolder gives the one definition of a folder.
func inFolder(defs []definition.Definition, folder string) (of definition.Definition, found bool) {
	for _, d := range defs {
		if d.Folder != folder {
			continue
		}
		if found {
			return definition.Definition{}, false
		}
		of, found = d, true
	}
	return of, found
}

// sameFault tells whether a definition has the Fault that another has, and looks no different from outside.
func sameFault(d, was definition.Definition) bool {
	return d.Fault != nil && d.Fault.Message == was.Fault.Message && d.ID == was.ID &&
		d.DocumentType == was.DocumentType && d.Description == was.Description
}

// backoff gives the pause before the next try, and doubles the one after it.
func backoff(tries *int) time.Duration {
	pause := lastRetry
	if *tries < 10 {
		pause = min(firstRetry<<*tries, lastRetry)
	}
	*tries++
	return pause
}
