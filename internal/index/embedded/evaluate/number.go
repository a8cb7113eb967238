package evaluate

import (
	"cmp"
	"context"
	"math"
	"slices"

	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/embedded/evaluate/match"
)

// stats is the sum of numbers as a high and a low part: the low part is the rounding error of the high one, so that the sum does
// not depend on how documents are distributed over parts.
type stats struct {
	min, max  float64
	high, low float64
	count     int64
}

// observe adds n times the number v.
func (s *stats) observe(v float64, n int64) {
	if s.count == 0 {
		s.min, s.max = v, v
	}
	s.min, s.max = min(s.min, v), max(s.max, v)
	s.count += n
	product := v * float64(n)
	s.addSum(product, math.FMA(v, float64(n), -product))
}

// addSum adds a number in two parts.
func (s *stats) addSum(high, low float64) {
	sum := s.high + high
	back := sum - s.high
	lost := (s.high - (sum - back)) + (high - back)
	s.high, s.low = sum, s.low+lost+low
}

func (s *stats) add(t stats) {
	switch {
	case t.count == 0:
		return
	case s.count == 0:
		*s = t
		return
	}
	s.min, s.max = min(s.min, t.min), max(s.max, t.max)
	s.count += t.count
	s.addSum(t.high, t.low)
}

func (s *stats) result() index.Stats {
	if s.count == 0 {
		return index.Stats{}
	}
	sum := s.high + s.low
	if math.IsNaN(sum) { // the sum is infinite: the compensation is not a number
		sum = s.high
	}
	return index.Stats{Min: s.min, Max: s.max, Sum: sum, Avg: sum / float64(s.count), Count: s.count}
}

// numberOf returns a function like query.Number for a field, with a fast path for integers, of which there may be millions: it is
// query.Signed written out, which is 10 % faster.
func numberOf(f query.Field) func(key uint64) float64 {
	switch f.Type {
	case "byte", "short", "integer", "long", "date":
		return func(key uint64) float64 { return float64(int64(key ^ 1<<63)) }
	default:
		return func(key uint64) float64 { return query.Number(f, key) }
	}
}

// maxCountedNumbers is the number of distinct values up to which values are counted before they are summed up.
const maxCountedNumbers = 4096

// stats returns the statistics of a part.
func (at *countScope) stats(ctx context.Context, f query.Field, s *scratch) stats {
	var all stats
	column, number := at.values.column, numberOf(f)
	if column.Size() > maxCountedNumbers {
		s.Batches(ctx, at.docs.Bits, func(docs []uint32) {
			for _, d := range docs {
				at.values.each(d, func(ordinal uint32) { all.observe(number(column.Key(ordinal)), 1) })
			}
		})
		return all
	}
	s.counters = match.Zeroed(s.counters, int(column.Size()))
	s.Batches(ctx, at.docs.Bits, func(docs []uint32) {
		for _, d := range docs {
			at.values.each(d, func(ordinal uint32) { s.counters[ordinal].count++ })
		}
	})
	for ordinal, t := range s.counters {
		if t.count > 0 {
			all.observe(number(column.Key(uint32(ordinal))), int64(t.count))
		}
	}
	return all
}

// interval is one interval of a histogram.
type interval struct {
	// step is the key divided by the interval width.
	step  float64
	count int64
}

// histogram returns the number of documents by interval, ascending.
func (at *countScope) histogram(ctx context.Context, f query.Field, width float64, s *scratch) []interval {
	column, number := at.values.column, numberOf(f)
	s.groups = match.Zeroed(s.groups, int(column.Size())+1)
	var steps []interval
	for ordinal := range column.Size() {
		step := math.Floor(query.Computed(f, number(column.Key(ordinal))) / width)
		if n := len(steps); n == 0 || steps[n-1].step != step {
			steps = append(steps, interval{step: step})
		}
		s.groups[ordinal+1] = uint32(len(steps))
	}
	at.values.count(ctx, at.docs.Bits, s.groups, len(steps), s)
	for i := range steps {
		steps[i].count = int64(s.counters[i+1].count)
	}
	return slices.DeleteFunc(steps, func(i interval) bool { return i.count == 0 })
}

// intervals returns the histogram over all parts.
func (f *facetTask) intervals() ([]index.Interval, error) {
	var all []interval
	for i := range f.parts {
		all = append(all, f.parts[i].intervals...)
	}
	if len(all) == 0 {
		return nil, nil
	}
	slices.SortFunc(all, func(a, b interval) int { return cmp.Compare(a.step, b.step) })
	first, last := all[0].step, all[len(all)-1].step
	if !(last-first < index.MaxIntervals) {
		return nil, f.req.TooManyIntervals()
	}
	out := make([]index.Interval, int(last-first)+1)
	for i := range out {
		out[i].Key = (first + float64(i)) * f.req.Histogram
	}
	for _, i := range all {
		out[int(i.step-first)].Count += i.count
	}
	return out, nil
}
