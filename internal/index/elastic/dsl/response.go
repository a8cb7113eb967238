package dsl

import (
	"encoding/json"
	"strconv"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic/transport"
)

// Sizes of an arena's blocks, which double.
const (
	arenaMin = 1 << 10
	arenaMax = 64 << 10
)

// Arena keeps copies of many small parts of a response whose buffer is reused.
type Arena struct {
	free      []byte
	blockSize int
}

// Copy returns a copy of b.
func (a *Arena) Copy(b []byte) []byte {
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

// Response is the response to one search. Its slices share the response's bytes.
type Response struct {
	PIT      string
	timedOut bool
	// hasShards is set when the response contains the number of failed shards.
	hasShards bool
	failed    int64
	// Total is the number of matching documents if HasTotal is set.
	Total    int64
	HasTotal bool
	// ReadHits and ReadAggs read these members at the reader's position.
	ReadHits func(*Reader)
	ReadAggs func(*Reader)
	found    struct{ hits, aggs bool }
	// Filtered is set when the request's filter_path omits empty members.
	Filtered bool

	err    []byte
	status int64
}

// Read reads one search's response.
func (a *Response) Read(c *Reader) {
	c.Object(func(name []byte) {
		switch string(name) {
		case "pit_id":
			a.PIT = c.ReadString()
		case "timed_out":
			a.timedOut = c.boolean()
		case "_shards":
			a.hasShards = true
			c.Object(func(name []byte) {
				if string(name) == "failed" {
					a.failed = c.count()
				}
			})
		case "hits":
			c.Object(func(name []byte) { a.hitsMember(c, name) })
		case "aggregations":
			if a.found.aggs = true; a.ReadAggs != nil {
				a.ReadAggs(c)
			}
		case "error":
			a.err = c.raw()
		case "status":
			a.status = c.count()
		}
	})
}

func (a *Response) hitsMember(c *Reader, name []byte) {
	switch string(name) {
	case "total":
		c.Object(func(name []byte) {
			if string(name) == "value" {
				a.Total, a.HasTotal = c.count(), true
			}
		})
	case "hits":
		if a.found.hits = true; a.ReadHits != nil {
			a.ReadHits(c)
		}
	}
}

// Check returns the error in the response, or an error if the response is incomplete.
func (a *Response) Check(c *Reader) error {
	switch {
	case a.err != nil && !c.Bad:
		return transport.SearchErrorOf(int(a.status), a.err)
	case c.Bad, !a.hasShards, a.ReadHits != nil && !a.found.hits && !a.Filtered, a.ReadAggs != nil && !a.found.aggs:
		return transport.UnexpectedResponse()
	case a.timedOut || a.failed > 0:
		return core.NewError(core.CodeUnavailable, "the index returned incomplete search results")
	default:
		return nil
	}
}

// HitsReader reads lists of hits.
type HitsReader struct {
	Source index.Source
	// SortKeys is the number of sort keys of each hit.
	SortKeys int
	// Copy returns bytes for a hit that may be kept, given bytes of the response.
	Copy func([]byte) []byte
	// ReadSource, unless nil, reads documents in place (index.HitsRequest.Read).
	ReadSource func(id string, data []byte, at int) (kept []byte, end int)
	// MaxHits is the maximum number of hits, 0 if unknown.
	MaxHits int
	// SourceBytes is the total size of the documents.
	SourceBytes int64
	// KeptBytes is the size of those that were copied.
	KeptBytes int64
	// sortValues is the preallocated memory for sort values.
	sortValues []json.RawMessage
	// WithIndex collects the hits' indices in Indices.
	WithIndex bool
	Indices   []string
	// LastSort is the raw sort array of the last hit, including values that the cluster added.
	LastSort []byte
}

func (r *HitsReader) Read(c *Reader) []index.Hit {
	hits := make([]index.Hit, 0, min(r.MaxHits, maxPreallocatedHits))
	c.Array(func() {
		var hit index.Hit
		var in string
		c.Object(func(name []byte) {
			switch string(name) {
			case "_id":
				hit.ID = c.ReadString()
			case "_index":
				if r.WithIndex {
					in = r.index(c)
				}
			case "_source":
				r.readDocument(c, &hit)
			case "sort":
				from := c.at
				hit.Sort = r.sort(c)
				r.LastSort = c.Data[from:c.at]
			}
		})
		if hit.Source == nil && !r.Source.None {
			hit.Source = []byte("{}") // nothing was requested, or the index stores no sources
		}
		hits = append(hits, hit)
		if r.WithIndex {
			r.Indices = append(r.Indices, in)
		}
	})
	return hits
}

// index reads the name of an index. It is usually that of the previous hit and needs no unescaping.
func (r *HitsReader) index(c *Reader) string {
	name := c.text()
	if n := len(r.Indices); n > 0 && string(name) == r.Indices[n-1] {
		return r.Indices[n-1]
	}
	return string(name)
}

// readDocument reads a hit's document.
func (r *HitsReader) readDocument(c *Reader, hit *index.Hit) {
	if c.Peek() == '{' && r.ReadSource != nil && hit.ID != "" {
		switch kept, end := r.ReadSource(hit.ID, c.Data, c.at); {
		case kept != nil && end > c.at && end <= len(c.Data):
			r.SourceBytes += int64(end - c.at)
			hit.Source, hit.Read, c.at = kept, true, end
			return
		case kept != nil && len(kept) == 0: // not needed
			r.SourceBytes += int64(len(c.raw()))
			hit.Source, hit.Read = kept, true
			return
		}
	}
	raw := c.raw()
	r.SourceBytes += int64(len(raw))
	r.KeptBytes += int64(len(raw))
	hit.Source = r.Copy(raw)
}

// sort reads a hit's sort values. Those of several hits share one allocation.
func (r *HitsReader) sort(c *Reader) []json.RawMessage {
	if r.SortKeys == 0 {
		c.raw()
		return nil
	}
	if cap(r.sortValues)-len(r.sortValues) < r.SortKeys {
		r.sortValues = make([]json.RawMessage, 0, r.SortKeys*max(1, min(r.MaxHits, maxPreallocatedHits)))
	}
	from := len(r.sortValues)
	c.Array(func() {
		raw := c.raw()
		if len(r.sortValues)-from < r.SortKeys {
			r.sortValues = append(r.sortValues, r.Copy(raw))
		}
	})
	return r.sortValues[from:len(r.sortValues):len(r.sortValues)]
}

// Reader reads the cluster's responses sequentially, without decoding the parts that are passed on unchanged. After a syntax
// error it is bad and reads nothing more.
type Reader struct {
	Data []byte
	at   int
	Bad  bool
}

// Peek returns the next byte that is not white space, 0 at the end.
func (c *Reader) Peek() byte {
	for ; !c.Bad && c.at < len(c.Data); c.at++ {
		switch b := c.Data[c.at]; b {
		case ' ', '\t', '\r', '\n':
		default:
			return b
		}
	}
	return 0
}

// skip reads b if it is the next byte, and reports whether it was.
func (c *Reader) skip(b byte) bool {
	if c.Peek() != b {
		return false
	}
	c.at++
	return true
}

// Object reads an object and calls member at each value with the raw name. It skips values that member does not read.
func (c *Reader) Object(member func(name []byte)) {
	if !c.skip('{') {
		c.Bad = true
		return
	}
	if c.skip('}') {
		return
	}
	for !c.Bad {
		name := c.text()
		if !c.skip(':') {
			c.Bad = true
			return
		}
		c.Peek()
		from := c.at
		member(name)
		if c.at == from {
			c.raw()
		}
		if c.skip('}') {
			return
		}
		if !c.skip(',') {
			c.Bad = true
		}
	}
}

// Array reads an array and calls element at each value. It skips values that element does not read.
func (c *Reader) Array(element func()) {
	if !c.skip('[') {
		c.Bad = true
		return
	}
	if c.skip(']') {
		return
	}
	for !c.Bad {
		c.Peek()
		from := c.at
		element()
		if c.at == from {
			c.raw()
		}
		if c.skip(']') {
			return
		}
		if !c.skip(',') {
			c.Bad = true
		}
	}
}

// text reads a string and returns the raw bytes between its quotes.
func (c *Reader) text() []byte {
	if c.Peek() != '"' {
		c.Bad = true
		return nil
	}
	from := c.at + 1
	if c.at, _ = jsontext.String(c.Data, c.at); c.at <= from || c.Data[c.at-1] != '"' {
		c.at, c.Bad = len(c.Data), true
		return nil
	}
	return c.Data[from : c.at-1]
}

// ReadString reads and decodes a string.
func (c *Reader) ReadString() string {
	if c.Peek() != '"' {
		c.Bad = true
		return ""
	}
	return jsontext.Unquote(c.raw())
}

// raw reads any value and returns its bytes.
func (c *Reader) raw() []byte {
	switch c.Peek() {
	case '"':
		from := c.at
		c.text()
		return c.Data[from:c.at]
	case '{', '[':
		return c.container()
	case 0:
		c.Bad = true
		return nil
	default:
		return c.scalar()
	}
}

// container reads an object or an array; it only searches its end. A missing end is detected by the enclosing container.
func (c *Reader) container() []byte {
	from := c.at
	c.at = jsontext.Container(c.Data, from)
	return c.Data[from:c.at]
}

// scalar reads a number, true, false or null.
func (c *Reader) scalar() []byte {
	from := c.at
	for c.at < len(c.Data) {
		switch c.Data[c.at] {
		case ',', '}', ']', ':', ' ', '\t', '\r', '\n':
		case '"', '{', '[':
			c.Bad = true
			return nil
		default:
			c.at++
			continue
		}
		break
	}
	if c.at == from {
		c.Bad = true
	}
	return c.Data[from:c.at]
}

// count reads an integer.
func (c *Reader) count() int64 {
	n, err := strconv.ParseInt(string(c.raw()), 10, 64)
	if err != nil {
		c.Bad = true
	}
	return n
}

// number reads a number; 0 for null.
func (c *Reader) number() float64 {
	raw := c.raw()
	if string(raw) == "null" {
		return 0
	}
	v, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		c.Bad = true
	}
	return v
}

// boolean reads a value and reports whether it is true.
func (c *Reader) boolean() bool { return string(c.raw()) == "true" }
