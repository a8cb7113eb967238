package embedded

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded/evaluate"
)

// Search answers from the segments in memory; the file is read for the sources of hits alone.
func (x *Index) Search(ctx context.Context, name string, reqs []index.SearchRequest) ([]index.SearchResult, error) {
	if err := x.begin(); err != nil {
		return nil, err
	}
	defer x.calls.Done()
	a, err := x.searchable(ctx, name)
	if err != nil {
		return nil, err
	}
	done, err := x.turn(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if !wantSources(reqs) {
		answers, err := evaluate.Search(ctx, a.shelf.current().parts, reqs)
		return results(answers), err
	}
	var out []index.SearchResult
	err = x.fit(ctx, a, func(s *snapshot, rows *bbolt.Bucket) error {
		answers, err := evaluate.Search(ctx, s.parts, reqs)
		if err != nil {
			return err
		}
		out = results(answers)
		from := sources{rows: rows}
		for i := range answers {
			if err := from.fill(&answers[i], &reqs[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// turn waits until a processor is there for a search, which ends with done: searches that only share processors are no faster
// together, and keep writers waiting, who need one for moments but often.
func (x *Index) turn(ctx context.Context) (done func(), err error) {
	select {
	case x.searches <- struct{}{}:
		return func() { <-x.searches }, nil
	case <-ctx.Done():
		return nil, core.WrapError(core.CodeUnavailable, "searching the index was given up", ctx.Err())
	}
}

func results(answers []evaluate.Result) []index.SearchResult {
	out := make([]index.SearchResult, len(answers))
	for i := range answers {
		out[i] = answers[i].SearchResult
	}
	return out
}

// searchable returns an alias whose segments are in memory. It waits for them, but not so long that a client thinks its question is
// at fault.
func (x *Index) searchable(ctx context.Context, name string) (*alias, error) {
	a, err := x.alias(name)
	if err != nil {
		return nil, err
	}
	if !a.shelf.loading() {
		return a, nil
	}
	enough := time.NewTimer(x.cfg.LoadWait)
	defer enough.Stop()
	select {
	case <-a.shelf.ready:
		return a, nil
	case <-enough.C:
		return nil, &core.Error{
			Code: core.CodeUnavailable, Message: "the index is still being loaded after a start", RetryAfter: loadRetry,
			Hint: "try again in a while; what is written meanwhile is kept and will be found",
		}
	case <-x.ending:
		return nil, errClosed()
	case <-ctx.Done():
		return nil, core.WrapError(core.CodeUnavailable, "searching the index was given up", ctx.Err())
	}
}

// Loading returns the aliases that cannot be searched yet, because their columns are still being read or made of the documents; they
// take writes. It is empty for good once all have been loaded.
func (x *Index) Loading() []string {
	var names []string
	for _, a := range x.all() {
		if a.shelf.loading() {
			names = append(names, a.name)
		}
	}
	slices.Sort(names)
	return names
}

func wantSources(reqs []index.SearchRequest) bool {
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

// fit runs a read transaction with the snapshot of the same moment, so that all its documents have their sources. Neither waits
// for a writer: a transaction is shown before it can be read. It is tried again, a moment later, when transactions ended in between.
func (x *Index) fit(ctx context.Context, a *alias, read func(s *snapshot, rows *bbolt.Bucket) error) error {
	for fits := false; !fits; {
		if err := ctx.Err(); err != nil {
			return core.WrapError(core.CodeUnavailable, "searching the index was given up", err)
		}
		err := x.db.View(func(tx *bbolt.Tx) error {
			rows := aliasBucket(tx, a.name).Bucket(bucketRows())
			s := a.shelf.at(rows.Sequence())
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
			time.Sleep(fitPause)
		}
	}
	return nil
}

// fitPause is how long a search waits before it looks again for the snapshot of its transaction.
const fitPause = time.Millisecond

// maxSources bounds the bytes of the documents that one Search gives.
const maxSources = 128 << 20

// sources gives hits their documents, no more than maxSources in all.
type sources struct {
	rows  *bbolt.Bucket
	bytes int
}

// fill returns the hits of an answer their sources.
func (s *sources) fill(answer *evaluate.Result, req *index.SearchRequest) error {
	if req.Hits != nil && !req.Hits.Source.None {
		if err := s.hits(answer.Refs, answer.Hits); err != nil {
			return err
		}
	}
	for i := range req.Facets {
		b := req.Facets[i].Buckets
		if b == nil || b.TopHits == 0 || b.TopSource.None {
			continue
		}
		for j, places := range answer.TopRefs[i] {
			if err := s.hits(places, answer.Facets[i].Buckets[j].TopHits); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *sources) hits(places []evaluate.DocumentRef, hits []index.Hit) error {
	for part := range slices.Chunk(places, streamPart) {
		buf, err := fillHits(s.rows, nil, part, hits)
		if err != nil {
			return err
		}
		hits = hits[len(part):]
		if s.bytes += len(buf); s.bytes > maxSources {
			return &core.Error{
				Code: core.CodeInvalid, Message: fmt.Sprintf("the documents that are asked for have more than %d MB together", maxSources>>20),
				Hint: "ask for fewer of them at once",
			}
		}
	}
	return nil
}

// streamPart is how many documents are read before it is asked how large they are.
const streamPart = 256

// fillHits returns hits the sources of their places, in bytes that are appended to buf.
func fillHits(rows *bbolt.Bucket, buf []byte, places []evaluate.DocumentRef, hits []index.Hit) ([]byte, error) {
	for i, p := range places {
		start := len(buf)
		var err error
		if buf, err = appendSource(buf, rows.Get(rowKeyOf(p.Number))); err != nil {
			return buf, err
		}
		hits[i].Source = buf[start:len(buf):len(buf)]
	}
	return buf, nil
}

// Stream reads one snapshot, with one read transaction for its whole length: what is rewritten meanwhile must still be there, as
// it was. The price is that the pages of what is rewritten are not used again until it ends, so each must come to an end: who gives
// documents to a client bounds how slowly it may take them.
func (x *Index) Stream(ctx context.Context, name string, req index.StreamRequest, each func([]index.Hit) error) error {
	if err := x.begin(); err != nil {
		return err
	}
	defer x.calls.Done()
	a, err := x.searchable(ctx, name)
	if err != nil {
		return err
	}
	if req.Source.None {
		return evaluate.Stream(ctx, a.shelf.current().parts, req, func(_ []evaluate.DocumentRef, hits []index.Hit) error { return each(hits) })
	}
	return x.fit(ctx, a, func(s *snapshot, rows *bbolt.Bucket) error {
		var buf []byte
		return evaluate.Stream(ctx, s.parts, req, func(places []evaluate.DocumentRef, hits []index.Hit) error {
			var err error
			if buf, err = fillHits(rows, buf[:0], places, hits); err != nil {
				return err
			}
			return each(hits)
		})
	})
}
