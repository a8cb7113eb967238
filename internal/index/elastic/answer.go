package elastic

import (
	"encoding/json"

	"tutti/internal/core"
	"tutti/internal/index"
)

// An arena takes twice as much each time, between these.
const (
	arenaLeast = 1 << 10
	arenaMost  = 64 << 10
)

// arena keeps copies of many small parts of an answer whose own bytes go back to the pool.
type arena struct {
	free []byte
	took int
}

func (a *arena) copy(b []byte) []byte {
	if len(b) > len(a.free) {
		a.took = min(max(2*a.took, arenaLeast), arenaMost)
		a.free = make([]byte, max(len(b), a.took))
	}
	kept := a.free[:len(b):len(b)]
	a.free = a.free[len(b):]
	copy(kept, b)
	return kept
}

// hitsAtOnce is for how many hits room is made before they are counted.
const hitsAtOnce = 1000

// searchAnswer is the answer to one search. All bytes are those of the reply.
type searchAnswer struct {
	point    string
	timedOut bool
	// shards is set when the answer says how many of them failed.
	shards bool
	failed int64
	// total is the number of documents that match, when counted is set.
	total   int64
	counted bool
	// hits and aggs read these parts where they stand.
	hits  func(*cursor)
	aggs  func(*cursor)
	found struct{ hits, aggs bool }
	// cut is set where an answer is asked for without what is empty.
	cut bool

	fault  []byte
	status int64
}

// read reads one search's answer at the cursor.
func (a *searchAnswer) read(c *cursor) {
	c.object(func(name []byte) {
		switch string(name) {
		case "pit_id":
			a.point = c.str()
		case "timed_out":
			a.timedOut = c.isTrue()
		case "_shards":
			a.shards = true
			c.object(func(name []byte) {
				if string(name) == "failed" {
					a.failed = c.count()
				}
			})
		case "hits":
			c.object(func(name []byte) { a.hitsMember(c, name) })
		case "aggregations":
			if a.found.aggs = true; a.aggs != nil {
				a.aggs(c)
			}
		case "error":
			a.fault = c.raw()
		case "status":
			a.status = c.count()
		}
	})
}

func (a *searchAnswer) hitsMember(c *cursor, name []byte) {
	switch string(name) {
	case "total":
		c.object(func(name []byte) {
			if string(name) == "value" {
				a.total, a.counted = c.count(), true
			}
		})
	case "hits":
		if a.found.hits = true; a.hits != nil {
			a.hits(c)
		}
	}
}

// whole gives the error of an answer that is one, or that leaves something out.
func (a *searchAnswer) whole(c *cursor) error {
	switch {
	case a.fault != nil && !c.bad:
		return searchFault(int(a.status), a.fault)
	case c.bad, !a.shards, a.hits != nil && !a.found.hits && !a.cut, a.aggs != nil && !a.found.aggs:
		return notAsked()
	case a.timedOut || a.failed > 0:
		return core.NewError(core.CodeUnavailable, "the index did not answer a search in whole")
	default:
		return nil
	}
}

// hitsReader reads lists of hits.
type hitsReader struct {
	source index.Source
	// keys is how many keys the order has that hits are given with.
	keys int
	// keep gives the bytes that a hit is to have for those of the reply.
	keep func([]byte) []byte
	// take, where it is not nil, reads documents where they stand (index.HitsRequest.Read).
	take func(id string, data []byte, at int) (kept []byte, end int)
	// most is how many hits there are at most, 0 where that is not known.
	most int
	// weight is how many bytes the documents had.
	weight int64
	// kept is how many of these were kept.
	kept int64
	// places is the room for places in the order.
	places []json.RawMessage
	// located asks for the indices that hits are in, one for each.
	located bool
	indices []string
	// last is the place of the last hit, with whatever the cluster added to it, in the bytes of the reply.
	last []byte
}

func (r *hitsReader) read(c *cursor) []index.Hit {
	hits := make([]index.Hit, 0, min(r.most, hitsAtOnce))
	c.array(func() {
		var hit index.Hit
		var in string
		c.object(func(name []byte) {
			switch string(name) {
			case "_id":
				hit.ID = c.str()
			case "_index":
				if r.located {
					in = r.index(c)
				}
			case "_source":
				r.document(c, &hit)
			case "sort":
				from := c.at
				hit.Sort = r.sort(c)
				r.last = c.data[from:c.at]
			}
		})
		if hit.Source == nil && !r.source.None {
			hit.Source = []byte("{}") // nothing of it was asked for, or the index keeps none
		}
		hits = append(hits, hit)
		if r.located {
			r.indices = append(r.indices, in)
		}
	})
	return hits
}

// index reads the name of an index, which is mostly that of the hit before and needs no escapes.
func (r *hitsReader) index(c *cursor) string {
	name := c.text()
	if n := len(r.indices); n > 0 && string(name) == r.indices[n-1] {
		return r.indices[n-1]
	}
	return string(name)
}

// document reads a hit's document at the cursor.
func (r *hitsReader) document(c *cursor, hit *index.Hit) {
	if c.peek() == '{' && r.take != nil && hit.ID != "" {
		if kept, end := r.take(hit.ID, c.data, c.at); kept != nil && end > c.at && end <= len(c.data) {
			r.weight += int64(end - c.at)
			hit.Source, hit.Read, c.at = kept, true, end
			return
		}
	}
	raw := c.raw()
	r.weight += int64(len(raw))
	r.kept += int64(len(raw))
	hit.Source = r.keep(raw)
}

// sort reads a hit's place in the order. The places of several hits stand in one piece of memory.
func (r *hitsReader) sort(c *cursor) []json.RawMessage {
	if r.keys == 0 {
		c.raw()
		return nil
	}
	if cap(r.places)-len(r.places) < r.keys {
		r.places = make([]json.RawMessage, 0, r.keys*max(1, min(r.most, hitsAtOnce)))
	}
	from := len(r.places)
	c.array(func() {
		raw := c.raw()
		if len(r.places)-from < r.keys {
			r.places = append(r.places, r.keep(raw))
		}
	})
	return r.places[from:len(r.places):len(r.places)]
}
