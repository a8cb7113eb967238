package outcome

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"tutti/internal/core"
)

// Shared is what Outcomes need of an index that the repository shares with others.
type Shared struct {
	// State returns the current state of a document in the index of an alias.
	State func(ctx context.Context, alias, id string) (core.SharedState, error)
	// InConflict reports whether a record is in conflict, by the repository's part of its document.
	InConflict func(stored []byte) bool
	// Publish publishes a Request for a record of a repository that shares the index.
	Publish func(ctx context.Context, r core.Request) error
}

// maxConflictPasses bounds how often the dead letters of a document's conflicts are compared with it while others change both.
const maxConflictPasses = 32

// settleConflicts settles the conflicts of records of a document until they agree with it.
func (o *Outcomes) settleConflicts(
	ctx context.Context, req core.Request, id string, records []core.SharedConflict, written []core.SharedBlock,
) error {
	for pass := 0; len(records) > 0; pass++ {
		changed, err := o.settleOnce(ctx, req, id, records, written)
		if err != nil {
			return err
		}
		if !changed {
			break
		}
		if pass == maxConflictPasses {
			return core.NewError(core.CodeOverloaded, "a shared document changes too fast to settle its conflicts")
		}
	}
	return nil
}

// CheckConflict removes the dead letter of a conflict of this repository if the conflict has ended.
func (o *Outcomes) CheckConflict(ctx context.Context, letter core.DeadLetter) error {
	req := core.Request{}
	if letter.Request != nil {
		req = *letter.Request
	}
	return o.settleConflicts(ctx, req, letter.RecordID, []core.SharedConflict{{Repository: o.code, Organization: letter.Organization}}, nil)
}

// Shares reports whether the repository shares its index with others.
func (o *Outcomes) Shares() bool { return o.cfg.Shared != nil }

// LacksConflict reports whether a record is in conflict, by the repository's part of its document, and has no dead letter.
func (o *Outcomes) LacksConflict(organization, id string, stored []byte) bool {
	return o.cfg.Shared != nil && o.cfg.Shared.InConflict(stored) && !o.HasDeadLetter(organization, id)
}

// conflicts returns the records of a document that are or may have been in conflict, according to a write and to the dead letters that
// this process knows of; with own, always this repository's.
func (o *Outcomes) conflicts(req core.Request, organization, id string, written core.SharedState, own bool) []core.SharedConflict {
	records := slices.Clone(written.Conflicts)
	add := func(repository, organization string, is bool) {
		c := core.SharedConflict{Repository: repository, Organization: organization}
		if (is || o.deadLetters.Has(repository, organization, id)) && !slices.Contains(records, c) {
			records = append(records, c)
		}
	}
	add(o.code, organization, own)
	add(o.code, req.Organization, own) // from which the record may have moved
	for _, b := range written.Blocks {
		add(b.Repository, b.Organization, false)
	}
	return records
}

// settleOnce stores and removes the dead letters of the conflicts of records, as the document is now. It reports whether it changed any.
// written are the blocks of the caller's write: they hold documents.
func (o *Outcomes) settleOnce(
	ctx context.Context, req core.Request, id string, records []core.SharedConflict, written []core.SharedBlock,
) (changed bool, err error) {
	letters := make([]core.DeadLetter, len(records)) // read before the document, for endConflict
	for i, r := range records {
		if letters[i], err = findLetter(ctx, o.deadLetters, r, id); err != nil {
			return false, err
		}
	}
	state, err := o.cfg.Shared.State(ctx, o.cfg.Repository.IndexName, id)
	if err != nil {
		return false, o.PauseOnError(err)
	}
	for _, b := range state.Blocks { // those that are in conflict only since the write
		if c := (core.SharedConflict{Repository: b.Repository, Organization: b.Organization}); b.Conflict && !slices.Contains(records, c) {
			letter, err := findLetter(ctx, o.deadLetters, c, id)
			if err != nil {
				return false, err
			}
			records, letters = append(records, c), append(letters, letter)
		}
	}
	for i, r := range records {
		letter := letters[i]
		b, conflict := state.InConflict(r.Repository, r.Organization)
		switch {
		case letter.Reason != "" && !isConflict(letter): // a later success of the record itself removes it, and settles again
		case conflict:
			stored, err := o.storeConflict(ctx, req, id, letter, b, state.Blocks, written)
			if changed = changed || stored; err != nil {
				return changed, err
			}
		case letter.Reason != "":
			changed = true
			if err := endConflict(ctx, o.deadLetters, letter); err != nil {
				return changed, err
			}
		}
	}
	return changed, nil
}

// findLetter returns the dead letter of a record, the zero value if there is none.
func findLetter(ctx context.Context, letters DeadLetters, r core.SharedConflict, id string) (core.DeadLetter, error) {
	letter, err := letters.Find(ctx, r.Repository, r.Organization, id)
	if core.CodeOf(err) == core.CodeNotFound {
		return core.DeadLetter{}, nil
	}
	return letter, err
}

// hintEnded is the hint of the dead letter of a conflict that a process is about to remove.
const hintEnded = "the conflict has ended; this dead letter is removed within 10 minutes"

// endConflict ends the dead letter of a conflict that the document, read after it, does not have: in one pass it changes the hint, and in
// the next one it removes the dead letter if the document still has no conflict, and nothing was stored over it since. Removing it at once
// would lose it: another process brings the conflict back, finds the dead letter and ends its Request, and this one, whose Request was
// replaced, is killed after the removal. That process either finds the changed hint and stores the dead letter again, or has written the
// document before the hint was changed, so that the next pass here finds the conflict.
func endConflict(ctx context.Context, letters DeadLetters, letter core.DeadLetter) error {
	if letter.Hint != hintEnded {
		letter.Hint, letter.Attempts, letter.LastAt = hintEnded, 0, time.Now().UTC()
		return letters.Put(ctx, letter)
	}
	return letters.Clear(ctx, letter.Repository, letter.Organization, letter.RecordID, 0, func(l core.DeadLetter) bool {
		return isConflict(l) && l.Hint == hintEnded && l.LastAt.Equal(letter.LastAt)
	})
}

func isConflict(l core.DeadLetter) bool { return l.Reason == core.ReasonConflict }

// requestOf returns the Request of a record in a shared document: req if it is of this repository.
func (o *Outcomes) requestOf(req core.Request, b core.SharedBlock) core.Request {
	if b.Repository == o.code {
		return req
	}
	return requestFor(b)
}

// requestFor returns a new Request for a record in a shared document.
func requestFor(b core.SharedBlock) core.Request {
	return core.Request{
		ID: uuid.Must(uuid.NewV7()).String(), Kind: core.KindIndex, Scope: core.ScopeRecord, Repository: b.Repository,
		Organization: b.Organization, RecordID: b.RecordID, Cause: core.CauseReconcile, ReceivedAt: time.Now().UTC(),
	}
}

// storeConflict stores the dead letter of a record in conflict, unless letter, the one that it has, says the same. It reports whether it
// did. A record that neither the write nor letter holds is requested, so that its dead letter holds it afterwards.
func (o *Outcomes) storeConflict(
	ctx context.Context, req core.Request, id string, letter core.DeadLetter, b core.SharedBlock, all, written []core.SharedBlock,
) (bool, error) {
	var winners []string
	for _, other := range all {
		if !other.Conflict {
			winners = append(winners, other.Repository)
		}
	}
	next := core.DeadLetter{
		Repository: b.Repository, Organization: b.Organization, RecordID: id, Reason: core.ReasonConflict,
		Hint: fmt.Sprintf("the document is made of the newer record of %s, which shares the index %s and differs: make the records the same or remove "+
			"one, then retry", strings.Join(winners, ", "), o.cfg.Repository.IndexName),
		Document: letter.Document, Size: letter.Size, SHA256: letter.SHA256, Truncated: letter.Truncated, Version: b.Version,
	}
	for _, w := range written {
		if kept := w.Document; kept != nil && w.Repository == b.Repository && w.Hash == b.Hash {
			next.Document, next.Size, next.SHA256, next.Truncated = kept.Bytes, kept.Size, kept.SHA256, kept.Truncated
		}
	}
	changes := letter.Reason != next.Reason || letter.Hint != next.Hint || letter.SHA256 != next.SHA256
	if changes {
		if err := o.StoreDeadLetter(ctx, o.requestOf(req, b), next); err != nil {
			return true, err
		}
	}
	if next.SHA256 != "" {
		return changes, nil
	}
	return changes, o.cfg.Shared.Publish(ctx, requestFor(b))
}
