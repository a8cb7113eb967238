package evaluate

import (
	"cmp"
	"context"
	"runtime"
	"slices"

	"tutti/internal/index"
	"tutti/internal/index/embedded/evaluate/match"
)

// streamBatch is the number of documents that Stream passes to a callback at a time.
const streamBatch = 500

// Stream calls each with the matching documents in the order of req, in batches; without an order they are sorted by number. Hits
// have only their ID. The slices passed to each are overwritten by the next call.
func Stream(ctx context.Context, parts []Part, req index.StreamRequest, each func(places []DocumentRef, hits []index.Hit) error) error {
	defer runtime.KeepAlive(parts)
	o, err := newOrder(req.Sort)
	if err != nil {
		return err
	}
	p := match.NewPlan()
	documents := p.Clause(req.Filter, "")
	views := newViews(parts, p)
	found := make([][]uint32, len(views))
	tasks := make([]task, 0, len(views))
	for i, v := range views {
		tasks = append(tasks, func(ctx context.Context, s *scratch) error {
			docs := v.LiveDocuments(ctx, documents, s.Scratch).Bits.ToArray()
			if o.sorts > 0 {
				o.sort(ctx, v, docs, s)
			}
			found[i] = docs
			return nil
		})
	}
	if err := (&workers{}).run(ctx, tasks); err != nil {
		return err
	}
	all := newSequence(&o, views, found)
	places, hits := make([]DocumentRef, 0, streamBatch), make([]index.Hit, 0, streamBatch)
	for !all.done() {
		if err := contextError(ctx); err != nil {
			return err
		}
		places, hits = places[:0], hits[:0]
		for len(places) < streamBatch && !all.done() {
			place := all.ref()
			places, hits = append(places, place), append(hits, index.Hit{ID: place.ID})
			all.next()
		}
		if err := each(places, hits); err != nil {
			return err
		}
	}
	return nil
}

// ranked is a document and its rank by one key.
type ranked struct {
	rank uint64
	doc  uint32
}

// sort sorts documents of a part key by key: only documents equal by one key are compared by the next.
func (o *order) sort(ctx context.Context, v *match.View, docs []uint32, s *scratch) {
	all := make([]ranked, len(docs))
	for i, d := range docs {
		all[i].doc = d
	}
	rankers := o.rankers(v)
	sortBy(ctx, all, rankers, s)
	for i, r := range all {
		docs[i] = r.doc
	}
}

func sortBy(ctx context.Context, all []ranked, rankers []*ranker, s *scratch) {
	for from := 0; from < len(all); from += match.BatchSize {
		batch := all[from:min(from+match.BatchSize, len(all))]
		for i, r := range batch {
			s.Docs[i] = r.doc
		}
		rankers[0].ranks(s.Docs[:len(batch)], s.ranks)
		for i := range batch {
			batch[i].rank = s.ranks[i]
		}
	}
	slices.SortFunc(all, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	if len(rankers) == 1 || ctx.Err() != nil {
		return
	}
	for from := 0; from < len(all); {
		to := from + 1
		for to < len(all) && all[to].rank == all[from].rank {
			to++
		}
		if to > from+1 {
			sortBy(ctx, all[from:to], rankers[1:], s)
		}
		from = to
	}
}
