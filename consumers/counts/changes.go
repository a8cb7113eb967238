package counts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/tidwall/gjson"
	"golang.org/x/sync/errgroup"

	"tutti/consumers/outcome"
	"tutti/consumers/state"
	"tutti/internal/core"
)

// A rebuild requests the records that have changed since a run one by one: up to one of changedShare, at least minChanged and at most
// maxChanged. Reading the list takes less time than more of them.
const (
	minChanged   = 100
	maxChanged   = 10_000
	changedShare = 10
	// changedChunk is how many of them one counter counts.
	changedChunk = 64
	// writtenRows is how many documents are read at once.
	writtenRows = 128
	// lettersPerPage is how many dead letters are read at once.
	lettersPerPage = 500
)

// changes are what has changed since a run that counted the kinds of the records.
type changes struct {
	of     *Kinds
	counts kindCounts
	// records are the ids of those that are new or may have changed, with their organizations.
	records map[string]string
	// gone is the number of records, at most, that are no longer as they were counted: they have changed, or have no document any more.
	gone int64
}

// errManyChanges ends a search for changes.
var errManyChanges = errors.New("too many records have changed")

// most returns how many records may have changed.
func (c *changes) most() int {
	return min(maxChanged, max(minChanged, int(c.counts.kinds.Records()/changedShare)))
}

// find finds the changes; why is set if they are not known.
//
// Every document that is not newer than the run, and every one that it has rejected, was counted. So the others that were counted are gone,
// whenever that was: the documents of records that were removed during the run are among them.
func (c *changes) find(ctx context.Context) (why string, err error) {
	idle, err := c.of.cfg.Requests.Idle(ctx, c.of.cfg.Repository.Code, core.ClassPages, core.ClassBatches)
	if err != nil || !idle {
		return "requests for records are waiting", err
	}
	// In this order: what a Request that ends now has written is found below.
	if c.records, err = c.of.cfg.Requests.PendingRecords(ctx, c.of.cfg.Repository.Code, ""); err != nil {
		return "", err
	}
	rejected, err := c.findRejected(ctx)
	if err == nil {
		err = c.findWritten(ctx, rejected)
	}
	switch {
	case errors.Is(err, core.ErrIndexMissing):
		return "the index is missing", nil
	case errors.Is(err, errManyChanges) || err == nil && len(c.records) > c.most():
		return fmt.Sprintf("there are over %d new or changed ones", c.most()), nil
	case err == nil && c.gone < 0:
		return fmt.Sprintf("there are %d more than it counted", -c.gone), nil
	}
	return "", err
}

// findRejected finds the records that were rejected since the run. It returns the ids of the documents that the run counted and rejected.
func (c *changes) findRejected(ctx context.Context) (rejected map[string]struct{}, err error) {
	rejected = make(map[string]struct{})
	for cursor := ""; ; {
		letters, next, err := c.of.cfg.Letters.List(ctx, core.DeadLetterFilter{Repository: c.of.cfg.Repository.Code, Limit: lettersPerPage, Cursor: cursor})
		if err != nil {
			return nil, err
		}
		for i := range letters {
			letter := &letters[i]
			if letter.RecordID == "" {
				continue
			}
			record := letter.RecordID
			if letter.Request != nil {
				record = cmp.Or(letter.Request.RecordID, record)
			}
			_, changed := c.records[record]
			switch {
			case c.ofPage(letter):
				if !changed && letter.Reason == core.ReasonRejected && letter.EngineType != "" && letter.EngineType != outcome.TypeUnusableRecord {
					rejected[letter.RecordID] = struct{}{}
				}
			case letter.Version > c.counts.version:
				c.records[record] = letter.Organization
			}
		}
		if cursor = next; cursor == "" {
			return rejected, nil
		}
		if len(c.records) > c.most() {
			return nil, errManyChanges
		}
	}
}

// ofPage reports whether a page of the run has rejected what a dead letter is of.
func (c *changes) ofPage(letter *core.DeadLetter) bool {
	return letter.JobID == c.counts.jobID && letter.Version <= c.counts.ended && (letter.Request == nil || letter.Request.Cause != core.CauseSweep)
}

// findWritten finds the records that were written since the run, and how many are gone.
func (c *changes) findWritten(ctx context.Context, rejected map[string]struct{}) error {
	alias := c.of.cfg.Repository.IndexName
	if err := c.of.cfg.Index.Refresh(ctx, alias); err != nil {
		return err
	}
	left := int64(0)
	var written []string
	err := c.of.cfg.Index.Scan(ctx, alias, core.IndexScope{Repository: c.of.cfg.Repository.Code}, 0, func(id string, v core.Version) error {
		delete(rejected, id) // an older document of a rejected record, or a newer one
		_, changed := c.records[id]
		switch {
		case changed:
		case v <= c.counts.version:
			left++
		case len(written) == c.most():
			return errManyChanges
		default:
			written = append(written, id)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for ids := range slices.Chunk(written, writtenRows) {
		err := c.of.cfg.Index.GetAll(ctx, alias, ids, func(_ int, doc core.StoredDocument, found bool) {
			if found {
				fields := c.of.cfg.Repository.Fields
				c.records[gjson.GetBytes(doc.Source, fields.ID).String()] = gjson.GetBytes(doc.Source, fields.Organization).String()
			}
		})
		if err != nil {
			return err
		}
	}
	c.gone = c.counts.kinds.Documents() - left - int64(len(rejected))
	if c.of.cfg.Split != nil && c.gone >= 0 { // others of their documents may not have changed
		c.gone += int64(len(c.records))
	}
	return nil
}

// unreadError is an error of reading a record that has changed.
type unreadError struct {
	id    string
	cause error
}

// Error implements error.
func (e *unreadError) Error() string {
	return fmt.Sprintf("%q could not be read by itself: %s", e.id, core.MessageOf(e.cause))
}

// kinds returns the kinds that the run counted with those of the changed records; why is set if one of these cannot be read.
func (c *changes) kinds(ctx context.Context, job core.Job) (all core.Kinds, why string, err error) {
	job.Kinds = true
	all = c.counts.kinds
	var mu sync.Mutex
	calls, callCtx := errgroup.WithContext(ctx)
	calls.SetLimit(c.of.cfg.Concurrency)
	for ids := range slices.Chunk(slices.Collect(maps.Keys(c.records)), changedChunk) {
		calls.Go(func() error {
			counter := c.of.Counter(job)
			defer c.of.Release(counter)
			for _, id := range ids {
				if err := c.count(callCtx, job, counter, id); err != nil {
					return &unreadError{id, err}
				}
			}
			kinds := counter.Take(int64(len(ids)))
			mu.Lock()
			defer mu.Unlock()
			all = all.Add(kinds, maxReadKinds)
			return nil
		})
	}
	switch err := calls.Wait(); {
	case ctx.Err() != nil:
		return nil, "", ctx.Err()
	case err != nil:
		return nil, err.Error(), nil
	case !all.Whole():
		return nil, "they have too many different fields", nil
	}
	return all, "", nil
}

// count counts a changed record as it is now, if it has a document.
func (c *changes) count(ctx context.Context, job core.Job, counter Counter, id string) error {
	req := state.Child(job, core.ScopeRecord, c.records[id])
	req.RecordID = id
	rec, _, err := c.of.cfg.Fetcher.Record(ctx, req, nil)
	defer rec.Release()
	switch {
	case err != nil: // also of one that is absent: the Request may be for a part of another record
		return err
	case rec.Part != nil:
		return core.NewError(core.CodeInvalid, "it is part of another record")
	}
	c.of.Count(counter, rec, req.Organization)
	return nil
}
