package federation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
	"tutti/internal/search/graphql/output"
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
		f := one.fields[g.Name]
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
		f := one.fields[g.Name]
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

// stats are the statistics of the whole federation; without values, min, max and avg are null.
type stats struct {
	Min   *float64 `json:"min"`
	Max   *float64 `json:"max"`
	Avg   *float64 `json:"avg"`
	Sum   float64  `json:"sum"`
	Count int64    `json:"count"`
}

// statsMerger merges statistics.
type statsMerger struct {
	given bool
	all   stats
}

// add adds the statistics of a node. Without values it ignores them.
func (s *statsMerger) add(r *statsReply) {
	s.given = true
	if r.Count == 0 {
		return
	}
	s.all.Count = addCounts(s.all.Count, int64(r.Count))
	if r.Sum != nil {
		s.all.Sum += *r.Sum
	}
	if r.Min != nil && (s.all.Min == nil || *r.Min < *s.all.Min) {
		s.all.Min = r.Min
	}
	if r.Max != nil && (s.all.Max == nil || *r.Max > *s.all.Max) {
		s.all.Max = r.Max
	}
}

// stats returns the merged statistics.
func (s *statsMerger) stats() *stats {
	if math.IsInf(s.all.Sum, 0) { // not representable in JSON
		s.all.Sum = math.Copysign(math.MaxFloat64, s.all.Sum)
	}
	if s.all.Count > 0 {
		s.all.Avg = new(s.all.Sum / float64(s.all.Count))
	}
	return &s.all
}

const (
	// defaultInterval is the default interval of a histogram.
	defaultInterval = 1000
	// maxIntervals is the maximum number of intervals up to which empty ones are returned too.
	maxIntervals = 10_000
)

// interval returns the requested interval of the histogram.
func (g *aggregate) interval() float64 {
	interval := 0.0
	if raw := g.argument("histogram", "interval"); raw == nil || json.Unmarshal(raw, &interval) != nil || interval <= 0 {
		return defaultInterval
	}
	return interval
}

// mergedHistogram merges histograms of one interval. Nodes return the intervals from the first to the last one with documents;
// the intervals between those of the nodes are added as empty ones, as if all documents were in one index.
func mergedHistogram(all [][]bucketReply, interval float64) []*bucket {
	byPlace := map[int64]*bucket{}
	dates := false
	for _, list := range all {
		for _, b := range list {
			key, err := strconv.ParseFloat(string(b.Key), 64)
			place := math.Round(key / interval)
			if err != nil || math.IsNaN(place) || math.Abs(place) > maxNumber {
				continue
			}
			one := byPlace[int64(place)]
			if one == nil {
				one = &bucket{Key: jsontext.Number(key + 0)}
				byPlace[int64(place)] = one
			}
			if one.Shown == nil && b.Shown != "" {
				one.Shown, dates = new(string(b.Shown)), true
			}
			one.Count = addCounts(one.Count, int64(b.Count))
		}
	}
	places := slices.Sorted(maps.Keys(byPlace))
	var out []*bucket
	for i, place := range places {
		if i > 0 && place-places[0] < maxIntervals {
			for empty := places[i-1] + 1; empty < place; empty++ {
				out = append(out, emptyInterval(float64(empty)*interval, dates))
			}
		}
		out = append(out, byPlace[place])
	}
	return out
}

func emptyInterval(key float64, date bool) *bucket {
	b := &bucket{Key: jsontext.Number(key + 0)}
	if date {
		b.Shown = new(time.UnixMilli(int64(key)).UTC().Format(output.TimeLayout))
	}
	return b
}

// mergedRanges merges ranges, which all nodes return in the same order. Several may have the same key.
func mergedRanges(all [][]bucketReply) []*bucket {
	var t bucketCounter
	for _, list := range all {
		seen := map[text]int{}
		for _, b := range list {
			t.add(fmt.Sprint(seen[b.Key], " ", b.Key), string(b.Shown), int64(b.Count))
			seen[b.Key]++
		}
	}
	for id, b := range t.byKey {
		_, b.Key, _ = strings.Cut(id, " ")
	}
	return t.list
}

// fieldReply is a node's result of one field: nil members were not requested or could not be returned.
type fieldReply struct {
	Buckets   []bucketReply  `json:"buckets"`
	Stats     *statsReply    `json:"stats"`
	Histogram *intervalReply `json:"histogram"`
	Range     *intervalReply `json:"range"`
}

// intervalReply is a histogram or ranges.
type intervalReply struct {
	Buckets []bucketReply `json:"buckets"`
}

// bucketReply is a bucket of a node.
type bucketReply struct {
	Key   text   `json:"key"`
	Shown text   `json:"key_as_string"`
	Count number `json:"doc_count"`
}

// statsReply are statistics; without values the numbers may be null.
type statsReply struct {
	Min   *float64 `json:"min"`
	Max   *float64 `json:"max"`
	Sum   *float64 `json:"sum"`
	Count number   `json:"count"`
}

// maxNumber is the largest number of documents accepted from a node: up to it JavaScript represents all integers exactly.
const maxNumber = 1<<53 - 1

// number is a number of documents; null is 0.
type number int64

// UnmarshalJSON reads a non-negative integer.
func (n *number) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		*n = 0
		return nil
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f < 0 || f > maxNumber || f != float64(int64(f)) {
		return fmt.Errorf("no number of documents: %.32q", raw)
	}
	*n = number(f)
	return nil
}

// text is a key; for a number or a boolean, its JSON text.
type text string

// UnmarshalJSON reads any value that is neither an object nor an array.
func (t *text) UnmarshalJSON(raw []byte) error {
	switch {
	case string(raw) == "null":
		*t = ""
		return nil
	case len(raw) > 0 && raw[0] == '"':
		var s string
		err := json.Unmarshal(raw, &s)
		*t = text(s)
		return err
	case len(raw) > 0 && (raw[0] == '{' || raw[0] == '['):
		return fmt.Errorf("no key: %.32q", raw)
	default:
		*t = text(raw)
		return nil
	}
}
