package elastic

import (
	"encoding/json"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic/transport"
)

// Sizes of an arena's blocks, which double.
const (
	arenaMin = 1 << 10
	arenaMax = 64 << 10
)

// arena keeps copies of many small parts of a response whose buffer is reused.
type arena struct {
	free      []byte
	blockSize int
}

func (a *arena) copy(b []byte) []byte {
	if len(b) > len(a.free) {
		a.blockSize = min(max(2*a.blockSize, arenaMin), arenaMax)
		a.free = make([]byte, max(len(b), a.blockSize))
	}
	kept := a.free[:len(b):len(b)]
	a.free = a.free[len(b):]
	copy(kept, b)
	return kept
}

// maxPreallocatedHits limits the hits that memory is allocated for before they are read.
const maxPreallocatedHits = 1000

// searchResponse is the response to one search. Its slices share the response's bytes.
type searchResponse struct {
	pit      string
	timedOut bool
	// hasShards is set when the response contains the number of failed shards.
	hasShards bool
	failed    int64
	// total is the number of matching documents if hasTotal is set.
	total    int64
	hasTotal bool
	// readHits and readAggs read these members at the reader's position.
	readHits func(*jsonReader)
	readAggs func(*jsonReader)
	found    struct{ hits, aggs bool }
	// filtered is set when the request's filter_path omits empty members.
	filtered bool

	err    []byte
	status int64
}

// read reads one search's response.
func (a *searchResponse) read(c *jsonReader) {
	c.object(func(name []byte) {
		switch string(name) {
		case "pit_id":
			a.pit = c.string()
		case "timed_out":
			a.timedOut = c.boolean()
		case "_shards":
			a.hasShards = true
			c.object(func(name []byte) {
				if string(name) == "failed" {
					a.failed = c.count()
				}
			})
		case "hits":
			c.object(func(name []byte) { a.hitsMember(c, name) })
		case "aggregations":
			if a.found.aggs = true; a.readAggs != nil {
				a.readAggs(c)
			}
		case "error":
			a.err = c.raw()
		case "status":
			a.status = c.count()
		}
	})
}

func (a *searchResponse) hitsMember(c *jsonReader, name []byte) {
	switch string(name) {
	case "total":
		c.object(func(name []byte) {
			if string(name) == "value" {
				a.total, a.hasTotal = c.count(), true
			}
		})
	case "hits":
		if a.found.hits = true; a.readHits != nil {
			a.readHits(c)
		}
	}
}

// check returns the error in the response, or an error if the response is incomplete.
func (a *searchResponse) check(c *jsonReader) error {
	switch {
	case a.err != nil && !c.bad:
		return transport.SearchErrorOf(int(a.status), a.err)
	case c.bad, !a.hasShards, a.readHits != nil && !a.found.hits && !a.filtered, a.readAggs != nil && !a.found.aggs:
		return transport.UnexpectedResponse()
	case a.timedOut || a.failed > 0:
		return core.NewError(core.CodeUnavailable, "the index returned incomplete search results")
	default:
		return nil
	}
}

// hitsReader reads lists of hits.
type hitsReader struct {
	source index.Source
	// sortKeys is the number of sort keys of each hit.
	sortKeys int
	// copy returns bytes for a hit that may be kept, given bytes of the response.
	copy func([]byte) []byte
	// readSource, unless nil, reads documents in place (index.HitsRequest.Read).
	readSource func(id string, data []byte, at int) (kept []byte, end int)
	// maxHits is the maximum number of hits, 0 if unknown.
	maxHits int
	// sourceBytes is the total size of the documents.
	sourceBytes int64
	// keptBytes is the size of those that were copied.
	keptBytes int64
	// sortValues is the preallocated memory for sort values.
	sortValues []json.RawMessage
	// withIndex collects the hits' indices in indices.
	withIndex bool
	indices   []string
	// lastSort is the raw sort array of the last hit, including values that the cluster added.
	lastSort []byte
}

func (r *hitsReader) read(c *jsonReader) []index.Hit {
	hits := make([]index.Hit, 0, min(r.maxHits, maxPreallocatedHits))
	c.array(func() {
		var hit index.Hit
		var in string
		c.object(func(name []byte) {
			switch string(name) {
			case "_id":
				hit.ID = c.string()
			case "_index":
				if r.withIndex {
					in = r.index(c)
				}
			case "_source":
				r.readDocument(c, &hit)
			case "sort":
				from := c.at
				hit.Sort = r.sort(c)
				r.lastSort = c.data[from:c.at]
			}
		})
		if hit.Source == nil && !r.source.None {
			hit.Source = []byte("{}") // nothing was requested, or the index stores no sources
		}
		hits = append(hits, hit)
		if r.withIndex {
			r.indices = append(r.indices, in)
		}
	})
	return hits
}

// index reads the name of an index. It is usually that of the previous hit and needs no unescaping.
func (r *hitsReader) index(c *jsonReader) string {
	name := c.text()
	if n := len(r.indices); n > 0 && string(name) == r.indices[n-1] {
		return r.indices[n-1]
	}
	return string(name)
}

// readDocument reads a hit's document.
func (r *hitsReader) readDocument(c *jsonReader, hit *index.Hit) {
	if c.peek() == '{' && r.readSource != nil && hit.ID != "" {
		if kept, end := r.readSource(hit.ID, c.data, c.at); kept != nil && end > c.at && end <= len(c.data) {
			r.sourceBytes += int64(end - c.at)
			hit.Source, hit.Read, c.at = kept, true, end
			return
		}
	}
	raw := c.raw()
	r.sourceBytes += int64(len(raw))
	r.keptBytes += int64(len(raw))
	hit.Source = r.copy(raw)
}

// sort reads a hit's sort values. Those of several hits share one allocation.
func (r *hitsReader) sort(c *jsonReader) []json.RawMessage {
	if r.sortKeys == 0 {
		c.raw()
		return nil
	}
	if cap(r.sortValues)-len(r.sortValues) < r.sortKeys {
		r.sortValues = make([]json.RawMessage, 0, r.sortKeys*max(1, min(r.maxHits, maxPreallocatedHits)))
	}
	from := len(r.sortValues)
	c.array(func() {
		raw := c.raw()
		if len(r.sortValues)-from < r.sortKeys {
			r.sortValues = append(r.sortValues, r.copy(raw))
		}
	})
	return r.sortValues[from:len(r.sortValues):len(r.sortValues)]
}
