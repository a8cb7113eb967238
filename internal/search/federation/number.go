package federation

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

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
	// dateLayout is the format of dates.
	dateLayout = "2006-01-02T15:04:05.000Z"
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
				one = &bucket{Key: plainNumber(key)}
				byPlace[int64(place)] = one
			}
			if one.Shown == nil && b.Shown != "" {
				one.Shown, dates = new(string(b.Shown)), true
			}
			one.Count = addCounts(one.Count, int64(b.Count))
		}
	}
	places := make([]int64, 0, len(byPlace))
	for place := range byPlace {
		places = append(places, place)
	}
	slices.Sort(places)
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
	b := &bucket{Key: plainNumber(key)}
	if date {
		b.Shown = new(time.UnixMilli(int64(key)).UTC().Format(dateLayout))
	}
	return b
}

// plainNumber formats a number as JavaScript does, as nodes do.
func plainNumber(f float64) string {
	if f == 0 {
		return "0"
	}
	if abs := math.Abs(f); abs >= 1e-6 && abs < 1e21 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strconv.FormatFloat(f, 'e', -1, 64)
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
