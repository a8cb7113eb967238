package embedded

import (
	"context"
	"fmt"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded/evaluate"
	"tutti/internal/index/embedded/indexfile"
)

// searcher evaluates searches.
type searcher struct {
	*shared
	// large are buffers of large documents, batches those of batches of a Stream.
	large, batches bufferPool
	// slots has an element for each search in progress.
	slots chan struct{}
}

// Search evaluates requests on the segments in memory; it reads the file only for the sources of hits.
func (x *searcher) Search(ctx context.Context, name string, reqs []index.SearchRequest) ([]index.SearchResult, error) {
	a, done, err := x.file.Use(name)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := a.AwaitLoaded(ctx, x.cfg.LoadWait); err != nil {
		return nil, err
	}
	reqs = normalized(a.Tree(), reqs)
	parts := a.Parts()
	if err := reserve(ctx, reqs, evaluate.FacetBytes(parts, reqs)); err != nil {
		return nil, err
	}
	if !needSources(reqs) {
		answers, err := x.evaluate(ctx, parts, reqs)
		return results(answers), err
	}
	var out []index.SearchResult
	err = a.ViewParts(ctx, func(parts []evaluate.Part, rows indexfile.Rows) error {
		answers, err := x.evaluate(ctx, parts, reqs)
		if err != nil {
			return err
		}
		out = results(answers)
		from := sources{documents: x.documents(rows, ownCaller("search"), 2)}
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

// documents returns the reader of documents within a read transaction; weight is the memory of a large one as a multiple of its size.
func (x *searcher) documents(rows indexfile.Rows, caller core.Caller, weight int64) documents {
	return documents{memory: x.cfg.Memory, large: &x.large, rows: rows, caller: caller, weight: weight}
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
	a, done, err := x.file.Use(name)
	if err != nil {
		return err
	}
	defer done()
	if err := a.AwaitLoaded(ctx, x.cfg.LoadWait); err != nil {
		return err
	}
	req.Filter = (&normalizer{a.Tree()}).node(req.Filter)
	if req.Source.None {
		return evaluate.Stream(ctx, a.Parts(), req, func(_ []evaluate.DocumentRef, hits []index.Hit) error { return each(hits) })
	}
	return a.ViewParts(ctx, func(parts []evaluate.Part, rows indexfile.Rows) error {
		caller := req.Caller
		if caller.ID == "" {
			caller = ownCaller("stream")
		}
		b := batches{each: each, batch: x.batches.get(batchBytes), documents: x.documents(rows, caller, largeWeight)}
		b.parts = newProjection(req.Source.Paths)
		defer func() { x.batches.put(b.batch) }()
		return evaluate.Stream(ctx, parts, req, func(places []evaluate.DocumentRef, hits []index.Hit) error { return b.add(ctx, places, hits) })
	})
}
