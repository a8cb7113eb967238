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
	"tutti/internal/index/elastic/transport"
	"tutti/internal/jsontext"
)

const (
	// seqNo sorts documents by their last write: unique within one shard. It also counts documents hidden from the caller, so
	// callers must never see it.
	seqNo = "_seq_no"
	// shardDoc sorts documents by their storage order, in a point in time only.
	shardDoc = "_shard_doc"
	// noField is a path that no mapping has: all documents are equal by it.
	noField = "_tutti_nothing"
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
	if !found.nonEmpty { // an alias without documents
		return learned, nil
	}
	if len(found.idMembers) > 0 {
		mappings, err := x.fetchMappings(ctx, alias)
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
	if learned.path == seqNo {
		if learned.indicesHash, err = x.indicesHash(ctx, alias); err != nil {
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
func (x *Index) sampleDocuments(ctx context.Context, alias string) (sample, error) {
	size := sampleSize
	found, err := x.readSample(ctx, alias, size)
	for ; transport.IsOverLimit(err) && size > 1; found, err = x.readSample(ctx, alias, size) {
		size /= 2
	}
	if transport.IsOverLimit(err) {
		return sample{}, transport.TooLarge(err)
	}
	return found, err
}

// readSample reads at most size documents of alias. hitsTask verifies for each returned document that the chosen member contains
// its id.
func (x *Index) readSample(ctx context.Context, alias string, size int) (sample, error) {
	into := x.client.GetBuffer()
	defer x.client.PutBuffer(into)
	body := []byte(`{"size":` + strconv.Itoa(size) + `,"track_total_hits":false,"query":` + matchAll + `,"sort":["_doc"]}`)
	reply, err := x.client.Do(ctx, transport.SearchRequest(body, alias), into)
	if err != nil {
		return sample{}, transport.AsSearchError(err)
	}
	var hits []index.Hit
	r := hitsReader{copy: func(b []byte) []byte { return b }}
	c := jsonReader{data: reply.Body}
	a := searchResponse{readHits: func(c *jsonReader) { hits = r.read(c) }}
	a.read(&c)
	if err := a.check(&c); err != nil {
		return sample{}, err
	}
	var answer struct {
		Shards struct{ Total int } `json:"_shards"`
	}
	if err := reply.Decode(&answer); err != nil {
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
func (x *Index) rejectIDField(alias string) { x.state(alias).idField.Store(&idField{path: seqNo}) }

// checkSorts rejects sorts that the cluster does not support.
func checkSorts(sorts []index.Sort) error {
	for _, s := range sorts {
		if err := s.Check(); err != nil {
			return err
		}
	}
	return nil
}

// appendSorts appends a sort array with one key for each of sorts.
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
	dst = jsontext.AppendRawString(dst, name)
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
		// Otherwise a missing value sorts as the lowest or highest integer, or 1970 for dates, which are possible values.
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

// appendNestedPaths appends the nested paths down to the values, each inside the one before.
func appendNestedPaths(dst []byte, paths []string) []byte {
	for _, path := range paths {
		dst = append(dst, `,"nested":{"path":`...)
		dst = jsontext.AppendRawString(dst, path)
	}
	for range paths {
		dst = append(dst, '}')
	}
	return dst
}

// unmappedType returns the type to assume in indices without the field.
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
