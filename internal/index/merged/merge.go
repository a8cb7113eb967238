package merged

import (
	"cmp"
	"slices"

	"tutti/internal/base/equality"
	"tutti/internal/base/isodate"
	"tutti/internal/core"
)

// group is the repositories that share one index.
type group struct {
	alias        string
	repositories map[string]core.Repository
	// rules are those by which the records are compared.
	rules *equality.Rules
}

// winner returns the index of the entry whose record a document is to be made of, -1 without entries: of the newest updatedAt or, if
// not all have one or they are the same, of the newest Request. Those of repositories that are no longer configured come last, because
// their records cannot be fetched.
func (g *group) winner(entries []entry) int {
	best, dated := -1, true
	for _, e := range entries {
		dated = dated && e.UpdatedAt != ""
	}
	for i, e := range entries {
		if best < 0 || g.newer(e, entries[best], dated) {
			best = i
		}
	}
	return best
}

func (g *group) newer(a, b entry, dated bool) bool {
	_, known := g.repositories[a.Code]
	if _, other := g.repositories[b.Code]; known != other {
		return known
	}
	if dated {
		at, _ := isodate.Time(a.UpdatedAt)
		other, _ := isodate.Time(b.UpdatedAt)
		if !at.Equal(other) {
			return at.After(other)
		}
	}
	return a.Version > b.Version
}

// own is a repository's own document, which a write merges into the stored one.
type own struct {
	entry
	content []byte
}

func (g *group) newOwn(repo core.Repository, item core.BatchItem, source []byte) own {
	parts := split(source)
	o := own{entryOf(repo, item.ID, item.Version, source, g.hash(source)), parts.content}
	o.block = parts.blocks[repo.Code]
	return o
}

// put returns a document with a repository's own one merged into it, and the state of the result.
func (g *group) put(d document, o own) (document, *core.SharedState) {
	next := d
	next.entries = slices.Clone(d.entries)
	at, is := next.find(o.Code)
	if is {
		next.entries[at] = o.entry
	} else {
		next.entries = slices.Insert(next.entries, at, o.entry)
	}
	winner := g.winner(next.entries)
	if winner == at || next.entries[winner].Hash != d.hash {
		next.content, next.hash = o.content, o.Hash
	}
	state := g.state(&next)
	blocks := state.Blocks
	for i, e := range next.entries {
		switch {
		case !blocks[i].Conflict:
		case i == at:
			blocks[i].Document = e.alone(o.content)
		case e.Hash == d.hash:
			blocks[i].Document = e.alone(d.content)
		}
	}
	return next, state
}

// alone returns the document of an entry's record for a dead letter.
func (e entry) alone(content []byte) *core.DeadLetterDocument {
	return core.NewDeadLetterDocument(appendDocument(nil, nil, content, e.block))
}

// remove returns a document without a repository's entry, and the state of the result. Without entries there is no document.
func (g *group) remove(d document, code string) (document, *core.SharedState) {
	next := d
	next.entries, next.removals = slices.Clone(d.entries), true
	if at, is := next.find(code); is {
		next.entries = slices.Delete(next.entries, at, at+1)
	}
	return next, g.state(&next)
}

// state returns the state of a document, and adds to the document the conflicts of its records. The record of the winner is fetched if
// the document is not made of it: then it is the record of another one, or of one that was removed.
func (g *group) state(d *document) *core.SharedState {
	blocks, winner := make([]core.SharedBlock, len(d.entries)), g.winner(d.entries)
	for i, e := range d.entries {
		_, known := g.repositories[e.Code]
		blocks[i] = core.SharedBlock{
			Repository: e.Code, Organization: e.Organization, RecordID: e.RecordID, Version: e.Version, Hash: e.Hash,
			Conflict: e.Hash != d.entries[winner].Hash, Fetch: i == winner && e.Hash != d.hash && known,
		}
		if blocks[i].Conflict {
			d.addConflict(core.SharedConflict{Repository: e.Code, Organization: e.Organization})
		}
	}
	return &core.SharedState{Blocks: blocks, Conflicts: d.conflicts}
}

// addConflict adds a conflict that the document does not have.
func (d *document) addConflict(c core.SharedConflict) {
	at, has := slices.BinarySearchFunc(d.conflicts, c, func(a, b core.SharedConflict) int {
		return cmp.Or(cmp.Compare(a.Repository, b.Repository), cmp.Compare(a.Organization, b.Organization))
	})
	if !has {
		d.conflicts = slices.Insert(slices.Clone(d.conflicts), at, c)
	}
}
