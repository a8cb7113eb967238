package record

import (
	"context"
	"slices"
	"time"

	"github.com/tidwall/gjson"
	"golang.org/x/sync/semaphore"

	"tutti/consumers/outcome"
	"tutti/internal/core"
	"tutti/internal/index/bulk"
)

// results are the results of a record's documents. There is at least one, unless there was an error: the first one is the record's own, of
// its only document, or of its marker.
type results []outcome.Document

// only returns the results of a record with one document.
func only(id string, r core.Result) results { return results{{ID: id, Result: r}} }

// mismatch returns the results for a record or document of another organization than the requested one.
func mismatch(id string) results { return only(id, core.Result{Outcome: core.OutcomeMismatch}) }

// documents are the documents of a record in the index.
type documents interface {
	// owner returns the owner of a record according to its documents in the index of an alias.
	owner(ctx context.Context, alias, id string) (storedOwner, error)
	// write writes the documents of a fetched record, and releases it.
	write(ctx context.Context, rec core.Record, fetchedAt time.Time, at writeVersion) (results, error)
	// remove deletes the documents of a record, also when none is stored: the version of the delete keeps an older write in
	// flight from restoring them.
	remove(ctx context.Context, id string, at writeVersion) (results, error)
}

// single is the one document of each record, which has the record's id.
type single struct{ *Config }

func (d single) owner(ctx context.Context, alias, id string) (storedOwner, error) {
	stored, found, err := d.Index.Get(ctx, alias, id)
	if err != nil || !found {
		return storedOwner{}, err
	}
	codes := gjson.GetBytes(stored.Source, "repositories.#.code").Array()
	return storedOwner{
		found: true, organization: gjson.GetBytes(stored.Source, d.Repository.Fields.Organization).String(),
		foreign: len(codes) > 0 && !slices.ContainsFunc(codes, func(c gjson.Result) bool { return c.String() == d.Repository.Code }),
	}, nil
}

func (d single) write(ctx context.Context, rec core.Record, fetchedAt time.Time, at writeVersion) (results, error) {
	defer rec.Release()
	write := core.Write{
		Op: core.OpIndex, ID: rec.ID, Version: at.version, Strict: at.strict, Repository: d.Repository.Code, FetchedAt: fetchedAt,
	}
	write.Document, write.Plain, rec.Body = d.Document(nil, rec), rec.Plain, nil
	return d.writeOne(ctx, write, rec.Release)
}

func (d single) remove(ctx context.Context, id string, at writeVersion) (results, error) {
	write := core.Write{
		Op: core.OpDelete, ID: id, Version: at.version, Strict: at.strict, Repository: d.Repository.Code, FetchedAt: time.Now(),
	}
	return d.writeOne(ctx, write, func() {})
}

// writeOne writes one document, and calls added once the Writer has copied its bytes.
func (d single) writeOne(ctx context.Context, write core.Write, added func()) (results, error) {
	ticket := d.Writer.Ticket()
	if err := d.Writer.Add(ctx, ticket, d.Repository.IndexName, write); err != nil {
		return nil, err
	}
	write.Document = nil
	added()
	ticket.Seal()
	written, err := ticket.Wait(ctx)
	if err != nil {
		return nil, err
	}
	return only(write.ID, written[0]), nil
}

// several are the documents of records that have any number of them. Each has its record's id in the field Fields.ID. A marker,
// which is the tombstone of a document that never exists, holds the version with which a record was last processed: so an older
// body in flight cannot restore removed documents, nor write documents that the record no longer has.
type several struct {
	*Config
	refreshed refresh
}

func (d *several) owner(ctx context.Context, alias, id string) (storedOwner, error) {
	found, err := d.stored(ctx, alias, id, 0)
	if err != nil || len(found) == 0 {
		return storedOwner{}, err
	}
	first, is, err := d.Index.Get(ctx, alias, found[0])
	if err != nil || !is {
		return storedOwner{}, err
	}
	return storedOwner{found: true, organization: gjson.GetBytes(first.Source, d.Repository.Fields.Organization).String()}, nil
}

// stored returns the ids of a record's documents in the index of an alias, with a version below the given one, 0 for all.
func (d *several) stored(ctx context.Context, alias, id string, below core.Version) (ids []string, err error) {
	refresh := func() error { return d.Index.Refresh(ctx, alias) }
	if alias == d.Repository.IndexName {
		err = d.refreshed.do(ctx, refresh)
	} else {
		err = refresh()
	}
	if err != nil {
		return nil, err
	}
	scope := core.IndexScope{Repository: d.Repository.Code, Field: d.Repository.Fields.ID, Organization: id}
	err = d.Index.Scan(ctx, alias, scope, below, func(id string, _ core.Version) error {
		ids = append(ids, id)
		return nil
	})
	return ids, err
}

func (d *several) write(ctx context.Context, rec core.Record, fetchedAt time.Time, at writeVersion) (results, error) {
	defer rec.Release()
	ticket, current := d.Writer.Ticket(), []string{}
	write := core.Write{
		Op: core.OpIndex, Version: at.version, Strict: at.strict, Repository: d.Repository.Code, FetchedAt: fetchedAt,
	}
	var addErr error
	err := d.Split(rec, func(id string, document []byte) error {
		write.ID, write.Document = id, document
		current = append(current, id)
		addErr = d.Writer.Add(ctx, ticket, d.Repository.IndexName, write)
		return addErr
	})
	if err != nil && addErr == nil { // before any document
		return only(rec.ID, core.Result{
			Outcome: core.OutcomeRejected, Type: outcome.TypeUnusableRecord, Reason: core.MessageOf(err),
			Rejected: core.NewDeadLetterDocument(rec.Body),
		}), nil
	}
	if err != nil {
		return nil, err
	}
	if len(current) == 0 {
		d.Logger.Warn("a record without files makes no document", "organization", rec.Organization, "record_id", rec.ID)
	}
	rec.Release()
	return d.finish(ctx, rec.ID, ticket, current, at)
}

func (d *several) remove(ctx context.Context, id string, at writeVersion) (results, error) {
	return d.finish(ctx, id, d.Writer.Ticket(), nil, at)
}

// finish writes the marker of a record after its current documents, and removes its other documents.
func (d *several) finish(ctx context.Context, id string, ticket *bulk.Ticket, current []string, at writeVersion) (results, error) {
	index := d.Repository.IndexName
	marker := core.Write{
		Op: core.OpDelete, ID: outcome.MarkerID(id), Version: at.version, Strict: at.strict, Repository: d.Repository.Code, FetchedAt: time.Now(),
	}
	if err := d.Writer.Add(ctx, ticket, index, marker); err != nil {
		return nil, err
	}
	rs, err := wait(ctx, ticket, append(slices.Clone(current), id))
	if err != nil {
		return nil, err
	}
	own := rs[len(rs)-1]
	own.Marker = true
	below, newer, mirrored := at.version+1, false, false
	if own.Outcome == core.OutcomeStale { // the documents that the newer reading has not written are older
		below, newer = own.CurrentVersion, true
	}
	for _, r := range rs {
		if r.Outcome == core.OutcomeStale || own.Outcome == core.OutcomeRemoved && r.Outcome == core.OutcomeRetry {
			own.Outcome, own.Code = r.Outcome, r.Code
			own.CurrentVersion = max(own.CurrentVersion, r.CurrentVersion)
		}
		own.NextVersion = max(own.NextVersion, r.NextVersion)
		mirrored = mirrored || r.Mirrored
	}
	rs = append(results{own}, rs[:len(rs)-1]...)
	if own.Outcome == core.OutcomeRetry || below == 0 {
		return rs, nil
	}
	removed, err := d.removeOthers(ctx, id, current, below, newer, mirrored)
	if err != nil {
		return nil, err
	}
	for _, r := range removed {
		rs[0].NextVersion = max(rs[0].NextVersion, r.NextVersion)
	}
	if i := slices.IndexFunc(removed, func(r outcome.Document) bool { return r.Outcome == core.OutcomeRetry }); i >= 0 {
		rs[0].Outcome, rs[0].Code = core.OutcomeRetry, removed[i].Code
	}
	return append(rs, removed...), nil
}

// removeOthers removes a record's documents with a version below the given one, except the current ones; if that is the version of
// a newer reading, except those that it had rejected. If mirrored is set, it also removes those that only the index that a rebuild fills
// has.
func (d *several) removeOthers(
	ctx context.Context, id string, current []string, below core.Version, newer, mirrored bool,
) (results, error) {
	var stored []string
	err := d.inEither(func(alias string) (bool, error) {
		ids, err := d.stored(ctx, alias, id, below)
		stored = append(stored, ids...)
		return !mirrored, err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(stored)
	stored = slices.Compact(stored)
	var others []string
	for _, other := range stored {
		keep := slices.Contains(current, other)
		if newer {
			if keep, err = d.rejected(ctx, other); err != nil {
				return nil, err
			}
		}
		if !keep {
			others = append(others, other)
		}
	}
	ticket := d.Writer.Ticket()
	for _, gone := range others {
		write := core.Write{Op: core.OpDelete, ID: gone, Version: below - 1, Repository: d.Repository.Code, FetchedAt: time.Now()}
		if err := d.Writer.Add(ctx, ticket, d.Repository.IndexName, write); err != nil {
			return nil, err
		}
	}
	return wait(ctx, ticket, others)
}

// rejected reports whether a stored document has a dead letter.
func (d *several) rejected(ctx context.Context, id string) (bool, error) {
	var stored core.StoredDocument
	err := d.inEither(func(alias string) (found bool, err error) {
		stored, found, err = d.Index.Get(ctx, alias, id)
		return found, err
	})
	return d.Outcomes.HasDeadLetter(gjson.GetBytes(stored.Source, d.Repository.Fields.Organization).String(), id), err
}

// wait seals a ticket and returns the results of its documents, whose ids are in order.
func wait(ctx context.Context, ticket *bulk.Ticket, ids []string) (results, error) {
	ticket.Seal()
	written, err := ticket.Wait(ctx)
	if err != nil {
		return nil, err
	}
	rs := make(results, len(written))
	for i, r := range written {
		rs[i] = outcome.Document{ID: ids[i], Result: r}
	}
	return rs, nil
}

// refresh shares one refresh of the index among concurrent callers. It serves only those that waited before it began.
type refresh struct {
	running *semaphore.Weighted // held during the refresh
	began   time.Time
}

func newRefresh() refresh { return refresh{running: semaphore.NewWeighted(1)} }

func (r *refresh) do(ctx context.Context, refresh func() error) error {
	called := time.Now()
	if err := r.running.Acquire(ctx, 1); err != nil {
		return err
	}
	defer r.running.Release(1)
	if r.began.After(called) {
		return nil
	}
	began := time.Now()
	if err := refresh(); err != nil {
		return err
	}
	r.began = began
	return nil
}
