package elastic

import (
	"encoding/json"

	"tutti/internal/core"
	"tutti/internal/index"
)

// An arena takes twice as much each time, between these.
const (
	arenaMin = 1 << 10
	arenaMax = 64 << 10
)

// arena keeps copies of many small parts of an answer whose own bytes go back to the pool.
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

// maxPreallocatedHits is for how many hits room is made before they are counted.
const maxPreallocatedHits = 1000

// searchResponse is the answer to one search. All bytes are those of the reply.
type searchResponse struct {
	pit      string
	timedOut bool
	// hasShards is set when the answer says how many of them failed.
	hasShards bool
	failed    int64
	// total is the number of documents that match, when counted is set.
	total    int64
	hasTotal bool
	// readHits and aggs read these parts where they stand.
	readHits func(*jsonReader)
	readAggs func(*jsonReader)
	found    struct{ hits, aggs bool }
	// filtered is set where an answer is asked for without what is empty.
	filtered bool

	err    []byte
	status int64
}

// read reads one search's answer at the cursor.
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

// check gives the error of an answer that is one, or that leaves something out.
func (a *searchResponse) check(c *jsonReader) error {
	switch {
	case a.err != nil && !c.bad:
		return searchErrorOf(int(a.status), a.err)
	case c.bad, !a.hasShards, a.readHits != nil && !a.found.hits && !a.filtered, a.readAggs != nil && !a.found.aggs:
		return unexpectedResponse()
	case a.timedOut || a.failed > 0:
		return core.NewError(core.CodeUnavailable, "the index did not answer a search in whole")
	default:
		return nil
	}
}

// hitsReader reads lists of hits.
type hitsReader struct {
	source index.Source
	// sortKeys is how many keys the order has that hits are given with.
	sortKeys int
	// copy gives the bytes that a hit is to have for those of the reply.
	copy func([]byte) []byte
	// readSource, where it is not nil, reads documents where they stand (index.HitsRequest.Read).
	readSource func(id string, data []byte, at int) (kept []byte, end int)
	// maxHits is how many hits there are at most, 0 where that is not known.
	maxHits int
	// sourceBytes is how many bytes the documents had.
	sourceBytes int64
	// keptBytes is how many of these were kept.
	keptBytes int64
	// sortValues is the room for places in the order.
	sortValues []json.RawMessage
	// withIndex asks for the indices that hits are in, one for each.
	withIndex bool
	indices   []string
	// lastSort is the place of the last hit, with whatever the cluster added to it, in the bytes of the reply.
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
			hit.Source = []byte("{}") // nothing of it was asked for, or the index keeps none
		}
		hits = append(hits, hit)
		if r.withIndex {
			r.indices = append(r.indices, in)
		}
	})
	return hits
}

// index reads the name of an index, which is mostly that of the hit before and needs no escapes.
func (r *hitsReader) index(c *jsonReader) string {
	name := c.text()
	if n := len(r.indices); n > 0 && string(name) == r.indices[n-1] {
		return r.indices[n-1]
	}
	return string(name)
}

// source reads a hit's document at the cursor.
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

// sort reads a hit's place in the order. The places of several hits stand in one piece of memory.
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
