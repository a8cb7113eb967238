package elastic

import (
	"context"
	"sync/atomic"

	"tutti/internal/index"
)

const (
	// maxWholeBytes is how large documents may be on the average to be asked for whole where a part is wanted: the cluster reads
	// and writes each source anew to leave out the rest, which costs it more than sending it.
	maxWholeBytes = 16 << 10
	// maxUnknownDocuments is how many documents of an unknown size are asked for whole, wholeMost how much is in all.
	maxUnknownDocuments = 200
	maxWholeTotal       = 32 << 20
)

// meanSize is what the documents of an alias weigh, by those that were read last; 0 before any was.
type meanSize struct{ bytes atomic.Int64 }

// needsSample tells whether so many documents are asked for in part that what they weigh has to be known.
func (w *meanSize) needsSample(source index.Source, size int) bool {
	return w.bytes.Load() == 0 && size > maxUnknownDocuments && !source.None && len(source.Paths) > 0
}

// choose gives what of size documents the cluster is asked for where source is wanted.
func (w *meanSize) choose(source index.Source, size int) index.Source {
	mean := w.bytes.Load()
	if source.None || len(source.Paths) == 0 || mean > maxWholeBytes || mean == 0 && size > maxUnknownDocuments ||
		mean*int64(size) > maxWholeTotal {
		return source
	}
	return index.Source{}
}

// observe takes whole documents, of so many bytes in all, into account.
func (w *meanSize) observe(documents int, bytes int64) {
	if documents == 0 {
		return
	}
	mean := bytes/int64(documents) + 1
	if before := w.bytes.Load(); before > 0 {
		mean = (3*before + mean) / 4
	}
	w.bytes.Store(mean)
}

// sampleSizes looks at some documents where many are asked for in part and none was weighed before.
func (x *Index) sampleSizes(ctx context.Context, alias string, reqs []index.SearchRequest) error {
	w := &x.state(alias).meanSize
	for i := range reqs {
		if h := reqs[i].Hits; h != nil && w.needsSample(h.Source, h.Size) {
			_, err := x.sampleDocuments(ctx, alias)
			return err
		}
	}
	return nil
}

// chooseSources gives reqs with what of the documents the cluster is asked for.
func chooseSources(reqs []index.SearchRequest, w *meanSize) []index.SearchRequest {
	asked := make([]index.SearchRequest, len(reqs))
	for i, req := range reqs {
		if req.Hits != nil {
			hits := *req.Hits
			hits.Source = w.choose(hits.Source, hits.Size)
			req.Hits = &hits
		}
		asked[i] = req
	}
	return asked
}

// observeSizes takes the whole documents that searches gave into account.
func observeSizes(searches []*subsearch, w *meanSize) {
	for _, s := range searches {
		if h := s.hits; h != nil && !h.request.Source.None && h.request.Source.Paths == nil {
			w.observe(len(h.into.Hits), h.sourceBytes)
		}
	}
}
