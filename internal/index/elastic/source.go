package elastic

import (
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

// cheapest gives what of size documents the cluster is asked for where source is wanted.
func (w *weight) cheapest(source index.Source, size int) index.Source {
	mean := w.bytes.Load()
	if source.None || len(source.Paths) == 0 || mean > wholeBytes || mean == 0 && size > unknownMost ||
		mean*int64(size) > wholeMost {
		return source
	}
	return index.Source{}
}

// learn takes whole documents into account.
func (w *weight) learn(hits []index.Hit) {
	if len(hits) == 0 {
		return
	}
	sum := int64(0)
	for i := range hits {
		sum += int64(len(hits[i].Source))
	}
	mean := sum/int64(len(hits)) + 1
	if before := w.bytes.Load(); before > 0 {
		mean = (3*before + mean) / 4
	}
	w.bytes.Store(mean)
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

// weigh takes the whole documents of results into account.
func weigh(reqs []index.SearchRequest, results []index.SearchResult, w *weight) {
	for i, req := range reqs {
		if req.Hits != nil && !req.Hits.Source.None && req.Hits.Source.Paths == nil {
			w.learn(results[i].Hits)
		}
	}
}
