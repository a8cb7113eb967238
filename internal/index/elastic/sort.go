package elastic

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"tutti/internal/filter/query"
	"tutti/internal/index"
)

const (
	// seqNo orders documents by when they were last written: no two that were written to one shard have the same. It counts
	// hidden documents as well, so that callers never see it.
	seqNo = "_seq_no"
	// shardDoc orders documents by where they are stored, in a point in time alone.
	shardDoc = "_shard_doc"
	// noField is a path that no mapping has: all documents are equal by it.
	noField = "_tutti_nothing"
	// idFieldTTL is how long it is believed that an alias has no field that holds the documents' ids.
	idFieldTTL = time.Minute
	// sampleSize is how many documents are looked at to find such a field, and to know what documents weigh.
	sampleSize = 10
)

// idField is the field that stands for a document's id where documents are put in order. The cluster does not sort by
// _id itself (indices.id_field_data.enabled is off by default, and would cost memory for every id), but most documents hold
// their id in a field. Where none is known it is seqNo, whose order is not that of the ids (see numbered).
type idField struct {
	path string
	// shards is how many the alias had, 0 when that is not known.
	shards int
	// indicesHash are those of the alias (indicesOf), 0 when that is not known.
	indicesHash uint64
	// expires is when it is looked for anew, zero for never.
	expires time.Time
}

// idFieldOf gives the field that stands for the ids of alias.
func (x *Index) idFieldOf(ctx context.Context, alias string) (*idField, error) {
	st := x.state(alias)
	if known := st.idField.Load(); known != nil && (known.expires.IsZero() || x.now().Before(known.expires)) {
		return known, nil
	}
	found, err := x.sampleDocuments(ctx, alias)
	if err != nil {
		return nil, err
	}
	learned := &idField{path: seqNo, shards: found.shards, expires: x.now().Add(idFieldTTL)}
	if !found.nonEmpty { // of an alias without documents nothing is learned
		return learned, nil
	}
	if len(found.idMembers) > 0 {
		mappings, err := x.fetchMappings(ctx, alias)
		if err != nil {
			return nil, asSearchError(err)
		}
		for _, name := range found.idMembers {
			if allKeywords(mappings, name) {
				learned.path, learned.expires = name, time.Time{}
				break
			}
		}
	}
	if learned.path == seqNo {
		if learned.indicesHash, err = x.indicesHash(ctx, alias); err != nil {
			return nil, asSearchError(err)
		}
	}
	st.idField.Store(learned)
	return learned, nil
}

// sample are the names of those members at the top of documents that hold the document's id.
type sample struct {
	idMembers []string
	// nonEmpty is whether there are documents, shards how many shards these may be in.
	nonEmpty bool
	shards   int
}

// sampleDocuments looks at some documents of alias: at what holds their ids, and at what they weigh.
func (x *Index) sampleDocuments(ctx context.Context, alias string) (sample, error) {
	size := sampleSize
	found, err := x.readSample(ctx, alias, size)
	for ; isOverLimit(err) && size > 1; found, err = x.readSample(ctx, alias, size) {
		size /= 2
	}
	if isOverLimit(err) {
		return sample{}, tooLarge(err)
	}
	return found, err
}

// readSample looks at some documents of alias that are at hand, size at most. Whether the members hold the ids of all is looked at where documents
// are given in that order.
func (x *Index) readSample(ctx context.Context, alias string, size int) (sample, error) {
	into := x.buffer()
	defer x.recycle(into)
	body := []byte(`{"size":` + strconv.Itoa(size) + `,"track_total_hits":false,"query":` + matchAll + `,"sort":["_doc"]}`)
	reply, err := x.client.do(ctx, searchRequest(body, alias), into)
	if err != nil {
		return sample{}, asSearchError(err)
	}
	var hits []index.Hit
	r := hitsReader{copy: func(b []byte) []byte { return b }}
	c := jsonReader{data: reply.body}
	a := searchResponse{readHits: func(c *jsonReader) { hits = r.read(c) }}
	a.read(&c)
	if err := a.check(&c); err != nil {
		return sample{}, err
	}
	var answer struct {
		Shards struct{ Total int } `json:"_shards"`
	}
	if err := reply.decode(&answer); err != nil {
		return sample{}, err
	}
	x.state(alias).meanSize.observe(len(hits), r.sourceBytes)
	votes := make(map[string]int)
	for _, hit := range hits {
		source := jsonReader{data: hit.Source}
		source.object(func(name []byte) {
			if source.peek() == '"' && source.string() == hit.ID {
				votes[string(name)]++
			}
		})
	}
	maps.DeleteFunc(votes, func(_ string, n int) bool { return n < len(hits) })
	return sample{idMembers: slices.Sorted(maps.Keys(votes)), nonEmpty: len(hits) > 0, shards: answer.Shards.Total}, nil
}

// allKeywords tells whether a name is that of a keyword in all mappings.
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

// rejectIDField sets seqNo as the identity of alias for good: the field that was taken for it does not hold the ids. How many shards there
// are is then unknown, as the alias may have others later.
func (x *Index) rejectIDField(alias string) { x.state(alias).idField.Store(&idField{path: seqNo}) }

// checkSorts refuses orders that the cluster does not have.
func checkSorts(sorts []index.Sort) error {
	for _, s := range sorts {
		if err := s.Check(); err != nil {
			return err
		}
	}
	return nil
}

// appendSorts appends an order, with one key for each of sorts.
func appendSorts(dst []byte, sorts []index.Sort, identity string) []byte {
	dst = append(dst, '[')
	for i, s := range sorts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendSort(dst, s, identity)
	}
	return append(dst, ']')
}

func appendSort(dst []byte, s index.Sort, identity string) []byte {
	name, unmapped := s.Field.Path, unmappedType(s.Field)
	known := countable(s.Field)
	switch {
	case s.Field.Path == idPath:
		name = identity
	case !known:
		name = noField
	}
	dst = append(dst, '{')
	dst = appendString(dst, name)
	dst = append(dst, `:{"order":"`...)
	if s.Descending {
		dst = append(dst, `desc"`...)
	} else {
		dst = append(dst, `asc"`...)
	}
	if s.MissingFirst {
		dst = append(dst, `,"missing":"_first"`...)
	}
	if known && s.Mode != "" {
		dst = append(dst, `,"mode":"`...)
		dst = append(dst, s.Mode...)
		dst = append(dst, '"')
	}
	switch s.Field.Type {
	case "byte", "short", "integer", dateNanos:
		// Else what has no value is the least or the highest integer, and 1970 of dates, which a value can be.
		dst = append(dst, `,"numeric_type":"long"`...)
	case "half_float":
		// Its own comparison fails from the second page on (Elasticsearch 8.19: unsupported_operation_exception).
		dst = append(dst, `,"numeric_type":"double"`...)
	}
	if name != seqNo && name != shardDoc {
		dst = append(dst, `,"unmapped_type":"`...)
		dst = append(dst, unmapped...)
		dst = append(dst, '"')
	}
	if known {
		dst = appendNestedPaths(dst, s.Field.Nested)
	}
	return append(dst, "}}"...)
}

// appendNestedPaths appends the way down to nested values, one level inside of the other.
func appendNestedPaths(dst []byte, paths []string) []byte {
	for _, path := range paths {
		dst = append(dst, `,"nested":{"path":`...)
		dst = appendString(dst, path)
	}
	for range paths {
		dst = append(dst, '}')
	}
	return dst
}

// unmappedType gives the type that a field has in an index that does not have it.
func unmappedType(f query.Field) string {
	switch {
	case f.Type == "scaled_float":
		return "double"
	case query.Keyed(f.Type), f.Type == typeIP:
		return f.Type
	default:
		return "keyword"
	}
}
