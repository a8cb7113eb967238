package embedded

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded/evaluate"
)

// loadRetry is the Retry-After of a search that is rejected while columns are loaded.
const loadRetry = 5 * time.Second

// searcher evaluates searches.
type searcher struct {
	*store
	// slots has an element for each search in progress.
	slots chan struct{}
}

// Search evaluates requests on the segments in memory; it reads the file only for the sources of hits.
func (x *searcher) Search(ctx context.Context, name string, reqs []index.SearchRequest) ([]index.SearchResult, error) {
	a, done, err := x.use(name)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := x.awaitLoaded(ctx, a); err != nil {
		return nil, err
	}
	reqs = normalized(a.tree.Load(), reqs)
	parts := a.segments.current().parts
	if err := reserve(ctx, reqs, evaluate.FacetBytes(parts, reqs)); err != nil {
		return nil, err
	}
	if !needSources(reqs) {
		answers, err := x.evaluate(ctx, parts, reqs)
		return results(answers), err
	}
	var out []index.SearchResult
	err = x.viewSnapshot(ctx, a, func(s *snapshot, rows *bbolt.Bucket) error {
		answers, err := x.evaluate(ctx, s.parts, reqs)
		if err != nil {
			return err
		}
		out = results(answers)
		from := sources{documents: documents{store: x.store, rows: rows, caller: ownCaller("search"), weight: 2}}
		size, err := from.find(answers, reqs)
		if err != nil {
			return err
		}
		if err := reserve(ctx, reqs, min(size, maxSources)); err != nil {
			return err
		}
		release, err := x.acquireSlot(ctx)
		if err != nil {
			return err
		}
		defer release()
		return from.fill(ctx, answers, reqs)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// evaluate evaluates requests, without their sources. It holds a slot only while it runs: what follows may wait for memory.
func (x *searcher) evaluate(ctx context.Context, parts []evaluate.Part, reqs []index.SearchRequest) ([]evaluate.Result, error) {
	release, err := x.acquireSlot(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return evaluate.Search(ctx, parts, reqs)
}

// reserve reserves memory as the requests say, if they do.
func reserve(ctx context.Context, reqs []index.SearchRequest, bytes int64) error {
	if len(reqs) == 0 || reqs[0].Reserve == nil {
		return nil
	}
	return reqs[0].Reserve(ctx, bytes)
}

// acquireSlot waits until fewer searches than processors are running; release ends the use of the slot. More concurrent searches would
// not be faster, and would delay writers, which often need a processor for a short time.
func (x *searcher) acquireSlot(ctx context.Context) (release func(), err error) {
	select {
	case x.slots <- struct{}{}:
		return func() { <-x.slots }, nil
	case <-ctx.Done():
		return nil, core.WrapError(core.CodeUnavailable, "searching the index was cancelled", ctx.Err())
	}
}

func results(answers []evaluate.Result) []index.SearchResult {
	out := make([]index.SearchResult, len(answers))
	for i := range answers {
		out[i] = answers[i].SearchResult
	}
	return out
}

// awaitLoaded waits until the segments of an alias are loaded, up to Config.LoadWait.
func (x *searcher) awaitLoaded(ctx context.Context, a *alias) error {
	if !a.segments.loading() {
		return nil
	}
	enough := time.NewTimer(x.cfg.LoadWait)
	defer enough.Stop()
	select {
	case <-a.segments.ready:
		return nil
	case <-enough.C:
		return &core.Error{
			Code: core.CodeUnavailable, Message: "the index is still being loaded after a start", RetryAfter: loadRetry,
			Hint: "retry later; the index accepts writes, and searches will find them",
		}
	case <-x.closeStarted:
		return errClosed()
	case <-ctx.Done():
		return core.WrapError(core.CodeUnavailable, "searching the index was cancelled", ctx.Err())
	}
}

func needSources(reqs []index.SearchRequest) bool {
	for i := range reqs {
		if h := reqs[i].Hits; h != nil && !h.Source.None {
			return true
		}
		for _, f := range reqs[i].Facets {
			if f.Buckets != nil && f.Buckets.TopHits > 0 && !f.Buckets.TopSource.None {
				return true
			}
		}
	}
	return false
}

// viewSnapshot runs a read transaction with the snapshot of the same state, so that all its documents have their sources. It
// retries after snapshotPoll when transactions ended in between. It does not wait for writers: the snapshot of a transaction is
// visible before the transaction can be read.
func (x *searcher) viewSnapshot(ctx context.Context, a *alias, read func(s *snapshot, rows *bbolt.Bucket) error) error {
	for fits := false; !fits; {
		if err := ctx.Err(); err != nil {
			return core.WrapError(core.CodeUnavailable, "searching the index was cancelled", err)
		}
		err := x.db.View(func(tx *bbolt.Tx) error {
			b := aliasBucket(tx, a.name)
			if b == nil {
				return errMissing(a.name)
			}
			rows := b.Bucket(bucketRows())
			s := a.segments.snapshotAt(rows.Sequence())
			if s == nil {
				return nil
			}
			fits = true
			return read(s, rows)
		})
		if err != nil {
			return err
		}
		if !fits {
			time.Sleep(snapshotPoll)
		}
	}
	return nil
}

// snapshotPoll is the interval between attempts to find the snapshot of a transaction.
const snapshotPoll = time.Millisecond

func errManySources() error {
	return &core.Error{
		Code: core.CodeInvalid, Message: fmt.Sprintf("the requested documents together exceed %d MB", maxSources>>20),
		Hint: "request fewer documents at once",
	}
}

// Stream reads one snapshot in a single read transaction, because documents that are rewritten must remain readable. Until the
// transaction ends, the pages of rewritten documents are not reused, so callers must bound its duration: whoever sends the
// documents to a client must close a slow one. Large documents wait for Config.Memory.
func (x *searcher) Stream(ctx context.Context, name string, req index.StreamRequest, each func([]index.Hit) error) error {
	a, done, err := x.use(name)
	if err != nil {
		return err
	}
	defer done()
	if err := x.awaitLoaded(ctx, a); err != nil {
		return err
	}
	req.Filter = (&normalizer{a.tree.Load()}).node(req.Filter)
	if req.Source.None {
		return evaluate.Stream(ctx, a.segments.current().parts, req, func(_ []evaluate.DocumentRef, hits []index.Hit) error { return each(hits) })
	}
	return x.viewSnapshot(ctx, a, func(s *snapshot, rows *bbolt.Bucket) error {
		caller := req.Caller
		if caller.ID == "" {
			caller = ownCaller("stream")
		}
		b := batches{each: each, batch: x.batches.get(batchBytes), documents: documents{
			store: x.store, rows: rows, caller: caller, weight: largeWeight, parts: newProjection(req.Source.Paths),
		}}
		defer func() { x.batches.put(b.batch) }()
		return evaluate.Stream(ctx, s.parts, req, func(places []evaluate.DocumentRef, hits []index.Hit) error { return b.add(ctx, places, hits) })
	})
}
