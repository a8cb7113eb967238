package elastic

import (
	"context"
	"sync/atomic"

	"tutti/internal/index"
)

const (
	// wholeBytes is how large documents may be on the average to be asked for whole where a part is wanted: the cluster reads
	// and writes each source anew to leave out the rest, which costs it more than sending it.
	wholeBytes = 16 << 10
	// unknownMost is how many documents of an unknown size are asked for whole, wholeMost how much is in all.
	unknownMost = 200
	wholeMost   = 32 << 20
)

// weight is what the documents of an alias weigh, by those that were read last; 0 before any was.
type weight struct{ bytes atomic.Int64 }

// unknown tells whether so many documents are asked for in part that what they weigh has to be known.
func (w *weight) unknown(source index.Source, size int) bool {
	return w.bytes.Load() == 0 && size > unknownMost && !source.None && len(source.Paths) > 0
}

// cheapest gives what of size documents the cluster is asked for where source is wanted.
func (w *weight) cheapest(source index.Source, size int) index.Source {
	mean := w.bytes.Load()
	if source.None || len(source.Paths) == 0 || mean > wholeBytes || mean == 0 && size > unknownMost ||
		mean*int64(size) > wholeMost {
		return source
	}
	return index.Source{}
}

// learn takes whole documents, of so many bytes in all, into account.
func (w *weight) learn(documents int, bytes int64) {
	if documents == 0 {
		return
	}
	mean := bytes/int64(documents) + 1
	if before := w.bytes.Load(); before > 0 {
		mean = (3*before + mean) / 4
	}
	w.bytes.Store(mean)
}

// weighSome looks at some documents where many are asked for in part and none was weighed before.
func (x *Index) weighSome(ctx context.Context, alias string, reqs []index.SearchRequest) error {
	w := &x.state(alias).sources
	for i := range reqs {
		if h := reqs[i].Hits; h != nil && w.unknown(h.Source, h.Size) {
			_, err := x.someDocuments(ctx, alias)
			return err
		}
	}
	return nil
}

// cheapest gives reqs with what of the documents the cluster is asked for.
func cheapest(reqs []index.SearchRequest, w *weight) []index.SearchRequest {
	asked := make([]index.SearchRequest, len(reqs))
	for i, req := range reqs {
		if req.Hits != nil {
			hits := *req.Hits
			hits.Source = w.cheapest(hits.Source, hits.Size)
			req.Hits = &hits
		}
		asked[i] = req
	}
	return asked
}

// weigh takes the whole documents that searches gave into account.
func weigh(searches []*search, w *weight) {
	for _, s := range searches {
		if h := s.hits; h != nil && !h.request.Source.None && h.request.Source.Paths == nil {
			w.learn(len(h.into.Hits), h.weight)
		}
	}
}
