package search

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"tutti/internal/index"
	"tutti/internal/index/elastic/dsl"
	"tutti/internal/index/elastic/transport"
)

const (
	// idFieldTTL is how long the result is cached that an alias has no field with the documents' ids.
	idFieldTTL = time.Minute
	// sampleSize is the number of documents read to find that field and to estimate document sizes.
	sampleSize = 10
)

// idField is the field that replaces a document's id in sorts. The cluster does not sort by _id (indices.id_field_data.enabled is
// off by default and would cost memory for every id), but most documents contain their id in a field. If none is known, path is
// seqNo, whose order is not that of the ids (see seqNoSort).
type idField struct {
	path string
	// shards is the number of the alias' shards, 0 if unknown.
	shards int
	// indicesHash identifies the alias' indices, 0 if unknown.
	indicesHash uint64
	// expires is when it must be determined again, zero for never.
	expires time.Time
}

// idFieldOf returns the field that replaces the ids of alias.
func (x *Searcher) idFieldOf(ctx context.Context, alias string) (*idField, error) {
	st := x.stats(alias)
	if known := st.idField.Load(); known != nil && (known.expires.IsZero() || x.now().Before(known.expires)) {
		return known, nil
	}
	found, err := x.sampleDocuments(ctx, alias)
	if err != nil {
		return nil, err
	}
	learned := &idField{path: dsl.SeqNo, shards: found.shards, expires: x.now().Add(idFieldTTL)}
	if !found.nonEmpty { // an alias without documents
		return learned, nil
	}
	if len(found.idMembers) > 0 {
		mappings, err := x.meta.Mappings(ctx, alias)
		if err != nil {
			return nil, transport.AsSearchError(err)
		}
		for _, name := range found.idMembers {
			if allKeywords(mappings, name) {
				learned.path, learned.expires = name, time.Time{}
				break
			}
		}
	}
	if learned.path == dsl.SeqNo {
		if learned.indicesHash, err = x.meta.IndicesHash(ctx, alias); err != nil {
			return nil, transport.AsSearchError(err)
		}
	}
	st.idField.Store(learned)
	return learned, nil
}

// sample is the result of reading some documents: idMembers are their top-level members that contain the document's id.
type sample struct {
	idMembers []string
	// nonEmpty is set when there are documents; shards is the number of shards.
	nonEmpty bool
	shards   int
}

// sampleDocuments reads some documents of alias, for the members that contain their ids and for their size.
func (x *Searcher) sampleDocuments(ctx context.Context, alias string) (sample, error) {
	size, limit := sampleSize, int64(maxStreamPageBytes)
	for {
		found, err := x.readSample(ctx, alias, size, limit)
		over, largest := transport.IsOverLimit(err), x.client.MaxResponseBytes()
		switch {
		case size > 1 && (over || transport.TypeOf(err) == transport.TypeCircuitBreaking):
			size /= 2
		case over && limit < largest:
			limit = min(2*limit, largest)
		case over:
			return sample{}, transport.TooLarge(err)
		default:
			return found, err
		}
	}
}

// sampleSizes reads some documents if a request needs the documents' size and it is unknown.
func (x *Searcher) sampleSizes(ctx context.Context, alias string, reqs []index.SearchRequest) error {
	w := &x.stats(alias).meanSize
	for i := range reqs {
		if h := reqs[i].Hits; h != nil && w.needsSample(h.Source, h.Size) {
			_, err := x.sampleDocuments(ctx, alias)
			return err
		}
	}
	return nil
}

// readSample reads at most size documents, and limit bytes, of alias. hitsTask verifies for each returned document that the chosen member contains
// its id.
func (x *Searcher) readSample(ctx context.Context, alias string, size int, limit int64) (sample, error) {
	into := x.client.GetBuffer()
	defer x.client.PutBuffer(into)
	body := []byte(`{"size":` + strconv.Itoa(size) + `,"track_total_hits":false,"query":` + dsl.MatchAll + `,"sort":["_doc"]}`)
	reply, err := x.client.DoWithin(ctx, transport.SearchRequest(body, alias), into, limit)
	if err != nil {
		return sample{}, transport.AsSearchError(err)
	}
	var hits []index.Hit
	r := dsl.HitsReader{Copy: func(b []byte) []byte { return b }}
	c := dsl.Reader{Data: reply.Body}
	a := dsl.Response{ReadHits: func(c *dsl.Reader) { hits = r.Read(c) }}
	a.Read(&c)
	if err := a.Check(&c); err != nil {
		return sample{}, err
	}
	var answer struct {
		Shards struct{ Total int } `json:"_shards"`
	}
	if err := reply.Decode(&answer); err != nil {
		return sample{}, err
	}
	x.stats(alias).meanSize.observe(len(hits), r.SourceBytes)
	votes := make(map[string]int)
	for _, hit := range hits {
		source := dsl.Reader{Data: hit.Source}
		source.Object(func(name []byte) {
			if source.Peek() == '"' && source.ReadString() == hit.ID {
				votes[string(name)]++
			}
		})
	}
	maps.DeleteFunc(votes, func(_ string, n int) bool { return n < len(hits) })
	return sample{idMembers: slices.Sorted(maps.Keys(votes)), nonEmpty: len(hits) > 0, shards: answer.Shards.Total}, nil
}

// allKeywords reports whether name is a keyword without a normalizer in all mappings.
func allKeywords(mappings map[string]json.RawMessage, name string) bool {
	for _, raw := range mappings {
		var mapped struct {
			Properties map[string]struct {
				Type       string `json:"type"`
				Normalizer string `json:"normalizer"`
			} `json:"properties"`
		}
		if json.Unmarshal(raw, &mapped) != nil || mapped.Properties[name].Type != "keyword" || mapped.Properties[name].Normalizer != "" {
			return false
		}
	}
	return true
}

// rejectIDField permanently sets seqNo as the id field of alias, after the presumed field did not contain an id. The number of
// shards is unknown then, as the alias may later have others.
func (x *Searcher) rejectIDField(alias string) {
	x.stats(alias).idField.Store(&idField{path: dsl.SeqNo})
}

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

// bound returns how many of size documents a page of a stream has: so many that the cluster reads at most maxStreamPageBytes for it.
func (w *meanSize) bound(size int) int {
	return max(1, min(size, int(maxStreamPageBytes/(w.bytes.Load()+1))))
}

// part returns how many documents, of which source is requested, a part of a page has at most: the cluster reads at most maxHitsBytes for it.
func (w *meanSize) part(source index.Source) int {
	if source.Paths == nil {
		return w.bound(index.MaxWindow)
	}
	return max(1, int(maxHitsBytes/(w.bytes.Load()+1)))
}

// inParts returns how many bytes a page that is read in parts takes at most, if at most so many bytes of documents are kept. More is never
// reserved while the page is read: it would wait for the memory that others hold while it holds its own.
func (w *meanSize) inParts(most int64) int64 {
	return most + pageWeight*max(maxStreamPageBytes, min(maxResponseBytes, 2*w.bytes.Load()))
}

// memory returns how many bytes the documents of reqs take, of which at most so many are kept, and the response that has them.
func (w *meanSize) memory(reqs []index.SearchRequest, most int64) int64 {
	var bytes int64
	mean := w.bytes.Load()
	for i := range reqs {
		h := reqs[i].Hits
		switch {
		case h == nil || h.Source.None || h.Size == 0:
		case mean == 0:
			bytes = max(bytes, maxStreamPageBytes)
		default:
			bytes += mean * int64(h.Size)
		}
	}
	if bytes > maxHitsBytes {
		return w.inParts(most)
	}
	return pageWeight * bytes
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

// aliasStats is what a Searcher learned from the documents of an alias.
type aliasStats struct {
	// idField is the field that holds the documents' ids, nil before the first request for it.
	idField atomic.Pointer[idField]
	// meanSize estimates the size of the documents.
	meanSize meanSize
}

// stats returns what was learned from the documents of alias.
func (x *Searcher) stats(alias string) *aliasStats {
	st, ok := x.aliases.Load(alias)
	if !ok {
		st, _ = x.aliases.LoadOrStore(alias, new(aliasStats))
	}
	return st.(*aliasStats)
}
