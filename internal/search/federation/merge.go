package federation

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"tutti/internal/core"
)

// Bucket keys that are not values.
const (
	missingKey      = "__missing__"
	notAvailableKey = "___aggregation_not_available___"
)

// bucket is a bucket of the whole federation.
type bucket struct {
	Key   string  `json:"key"`
	Shown *string `json:"key_as_string"`
	Count int64   `json:"doc_count"`
}

// buckets are the buckets of a field, with their number.
type buckets struct {
	Number  int       `json:"bucket_count"`
	Buckets []*bucket `json:"buckets"`
}

// termsAnswer and numericAnswer are the merged results of a field.
type (
	termsAnswer struct {
		buckets

		Cardinality int `json:"cardinality"`
	}
	numericAnswer struct {
		Stats     *stats   `json:"stats"`
		Histogram *buckets `json:"histogram"`
		Range     *buckets `json:"range"`
	}
)

// merged returns the merged results of all nodes for a field; nil if no node has any.
func (g *aggregate) merged(all []nodeResult) (json.RawMessage, error) {
	var of any
	var any bool
	switch g.of() {
	case termsType:
		of, any = g.mergedTerms(all)
	case numericType:
		of, any = g.mergedNumbers(all)
	default: // only the type is requested
		of, any = struct{}{}, true
	}
	if !any {
		return nil, nil
	}
	raw, err := json.Marshal(of)
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "merging the responses of the nodes", err)
	}
	return raw, nil
}

// mergedTerms merges the buckets of values. Documents of nodes without a result are in a separate bucket.
func (g *aggregate) mergedTerms(all []nodeResult) (answer termsAnswer, given bool) {
	var t bucketCounter
	for _, one := range all {
		if !one.counted {
			continue
		}
		given = true
		f := one.fields[g.name]
		if f == nil || f.Buckets == nil {
			if one.hits > 0 {
				t.add(notAvailableKey, "", one.hits)
			}
			continue
		}
		for _, b := range f.Buckets {
			t.add(string(b.Key), string(b.Shown), int64(b.Count))
		}
	}
	slices.SortFunc(t.list, func(a, b *bucket) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Key, b.Key))
	})
	values := 0
	most, limited := g.limit()
	kept := make([]*bucket, 0, len(t.list))
	for _, b := range t.list {
		if b.Key != missingKey && b.Key != notAvailableKey {
			if values++; limited && values > most {
				continue
			}
		}
		kept = append(kept, b)
	}
	return termsAnswer{buckets: numbered(kept), Cardinality: values}, given
}

// limit returns the requested maximum number of values.
func (g *aggregate) limit() (n int, limited bool) {
	raw := g.argument("buckets", "max")
	if raw == nil || json.Unmarshal(raw, &n) != nil {
		return 0, false
	}
	return max(n, 0), true
}

// mergedNumbers merges statistics, histograms and ranges of the nodes that returned them.
func (g *aggregate) mergedNumbers(all []nodeResult) (answer numericAnswer, given bool) {
	var s statsMerger
	var histograms, ranges [][]bucketReply
	for _, one := range all {
		f := one.fields[g.name]
		if f == nil {
			continue
		}
		given = true
		if f.Stats != nil {
			s.add(f.Stats)
		}
		if f.Histogram != nil {
			histograms = append(histograms, f.Histogram.Buckets)
		}
		if f.Range != nil {
			ranges = append(ranges, f.Range.Buckets)
		}
	}
	if s.given {
		answer.Stats = s.stats()
	}
	if histograms != nil {
		answer.Histogram = new(numbered(mergedHistogram(histograms, g.interval())))
	}
	if ranges != nil {
		answer.Range = new(numbered(mergedRanges(ranges)))
	}
	return answer, given
}

func numbered(list []*bucket) buckets {
	if list == nil {
		list = []*bucket{}
	}
	return buckets{Number: len(list), Buckets: list}
}

// bucketCounter counts documents by key.
type bucketCounter struct {
	byKey map[string]*bucket
	list  []*bucket
}

// add adds documents to a key. The first key_as_string of a key is used.
func (t *bucketCounter) add(key, shown string, n int64) {
	b := t.byKey[key]
	if b == nil {
		if t.byKey == nil {
			t.byKey = map[string]*bucket{}
		}
		b = &bucket{Key: key}
		t.byKey[key] = b
		t.list = append(t.list, b)
	}
	if b.Shown == nil && shown != "" {
		b.Shown = &shown
	}
	b.Count = addCounts(b.Count, n)
}

// addCounts adds numbers of documents, up to maxNumber: values from a node must not overflow.
func addCounts(a, b int64) int64 { return min(a+b, maxNumber) }
