package search

import (
	"sync/atomic"

	"tutti/internal/index"
)

const (
	// maxWholeBytes is the average size up to which whole documents are requested although only a part is needed: the cluster
	// parses and encodes a source again to omit the rest, which costs more than sending it.
	maxWholeBytes = 16 << 10
	// maxUnknownDocuments is the number of documents of unknown size that are requested as a whole; maxWholeTotal limits the
	// bytes of one request.
	maxUnknownDocuments = 200
	maxWholeTotal       = 32 << 20
)

// meanSize estimates the size of an alias' documents from those read recently; 0 before any was.
type meanSize struct{ bytes atomic.Int64 }

// needsSample reports whether parts of so many documents are requested that their size must be known.
func (w *meanSize) needsSample(source index.Source, size int) bool {
	return w.bytes.Load() == 0 && size > maxUnknownDocuments && !source.None && len(source.Paths) > 0
}

// choose returns the source to request for size documents of which source is needed.
func (w *meanSize) choose(source index.Source, size int) index.Source {
	mean := w.bytes.Load()
	if source.None || len(source.Paths) == 0 || mean > maxWholeBytes || mean == 0 && size > maxUnknownDocuments ||
		mean*int64(size) > maxWholeTotal {
		return source
	}
	return index.Source{}
}

// observe adds documents, of bytes in total, to the estimate.
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

// chooseSources returns reqs with the sources to request from the cluster.
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

// observeSizes adds the whole documents that searches returned to the estimate.
func observeSizes(searches []*subsearch, w *meanSize) {
	for _, s := range searches {
		if h := s.hits; h != nil && !h.request.Source.None && h.request.Source.Paths == nil {
			w.observe(len(h.into.Hits), h.sourceBytes)
		}
	}
}
