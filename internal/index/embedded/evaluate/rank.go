package evaluate

import (
	"math"
	"slices"

	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/query"
	"tutti/internal/index/embedded/evaluate/match"
	"tutti/internal/index/embedded/segment"
	"tutti/internal/index/embedded/segment/fieldvalue"
)

// ranker ranks the documents of one part by one key: of two documents the one of lower rank comes first. Ranks are comparable only
// within a part. It is not safe for concurrent use.
type ranker struct {
	key *key
	// values is nil when no document of the part has a value.
	values *values
	// addresses is the order of the ordinals of IP addresses, nil for other types.
	addresses   *segment.AddressOrder
	missingRank uint64
	// ordinals holds the ordinals of a document.
	ordinals []uint32
}

// lastRank is the rank of documents without a value, unless these come first. Values have ranks between 0 and lastRank.
const lastRank = math.MaxUint64

// descendingBase is the number from which ranks of ordinals are subtracted in a descending order.
const descendingBase = 1 << 34

func newRanker(k *key, v *match.View) *ranker {
	r := &ranker{key: k, missingRank: lastRank}
	if k.MissingFirst {
		r.missingRank = 0
	}
	column := countable(v, k.Field)
	if column != nil && column.Size() > 0 && column.Numeric() == (k.kind != textKey) {
		r.values = newValues(column, spanOf(v, k.Field.Row()), nil)
		if k.Field.Type == typeIP {
			r.addresses = column.Addresses()
		}
	}
	return r
}

// rankers returns the rankers of all keys in a part.
func (o *order) rankers(v *match.View) []*ranker {
	all := make([]*ranker, len(o.keys))
	for i := range o.keys {
		all[i] = newRanker(&o.keys[i], v)
	}
	return all
}

// ranks writes the ranks of docs to out.
func (r *ranker) ranks(docs []uint32, out []uint64) {
	v := r.values
	switch {
	case v == nil:
		for i := range docs {
			out[i] = r.missingRank
		}
	case r.key.kind == computedIntKey, r.key.kind == computedFloatKey:
		for i, d := range docs {
			number, some := r.computed(d)
			out[i] = r.numberRank(number, some)
		}
	case v.span == nil && v.single != nil:
		for i, d := range docs {
			out[i] = r.ordinalRank(v.single[d])
		}
	default:
		for i, d := range docs {
			out[i] = r.ordinalRank(r.ordinal(d))
		}
	}
}

// rank returns the rank of one document.
func (r *ranker) rank(doc uint32) uint64 {
	docs, out := [1]uint32{doc}, [1]uint64{}
	r.ranks(docs[:], out[:])
	return out[0]
}

// ordinalRank returns the rank of an ordinal plus one, 0 for none. It leaves a rank free between two ordinals.
func (r *ranker) ordinalRank(o uint32) uint64 {
	if o > 0 {
		o = r.position(o)
	}
	switch {
	case o == 0:
		return r.missingRank
	case r.key.Descending:
		return descendingBase - 2*uint64(o)
	default:
		return 2 * uint64(o)
	}
}

// position returns the position of an ordinal in the order of values, both plus one.
func (r *ranker) position(o uint32) uint32 {
	if r.addresses == nil {
		return o
	}
	return r.addresses.Ranks[o-1] + 1
}

// numberRank returns the rank of a computed number, which is neither 0 nor lastRank (computed).
func (r *ranker) numberRank(number uint64, some bool) uint64 {
	switch {
	case !some:
		return r.missingRank
	case r.key.Descending:
		number = ^number
	}
	return number
}

// ordinal returns the ordinal plus one of the value by which a document is sorted, 0 when it has none.
func (r *ranker) ordinal(doc uint32) uint32 {
	v := r.values
	if r.addresses != nil {
		return r.firstAddress(doc)
	}
	best := uint32(0)
	for row, end := v.rowsOf(doc); row < end; row++ {
		o := uint32(0)
		if v.single != nil {
			o = v.single[row]
		} else if from, to := v.offsets[row], v.offsets[row+1]; from < to {
			if r.key.highest {
				from = to - 1
			}
			o = v.ordinals[from] + 1
		}
		if o > 0 && (best == 0 || r.key.highest && o > best || !r.key.highest && o < best) {
			best = o
		}
	}
	return best
}

// firstAddress is ordinal for IP addresses, whose ordinals are not in their order.
func (r *ranker) firstAddress(doc uint32) uint32 {
	best, at := uint32(0), uint32(0)
	r.values.each(doc, func(ordinal uint32) {
		if position := r.position(ordinal + 1); best == 0 || r.key.highest && position > at || !r.key.highest && position < at {
			best, at = ordinal+1, position
		}
	})
	return best
}

// value returns the value by which a document is compared with those of other parts.
func (r *ranker) value(doc uint32) value {
	if r.values == nil {
		return value{missing: true}
	}
	if r.key.kind == computedIntKey || r.key.kind == computedFloatKey {
		number, some := r.computed(doc)
		return value{missing: !some, number: number}
	}
	o := r.ordinal(doc)
	switch {
	case o == 0:
		return value{missing: true}
	case r.key.kind == textKey:
		return value{text: r.values.column.Text(o - 1)}
	default:
		return value{number: r.values.column.Key(o - 1)}
	}
}

// rankAfter returns the rank of documents whose value is p.
func (r *ranker) rankAfter(p afterValue) uint64 {
	switch {
	case p.missing:
		return r.missingRank
	case r.key.kind == computedIntKey, r.key.kind == computedFloatKey:
		return r.numberRank(p.number, true)
	case r.values == nil:
		return 1
	}
	column := r.values.column
	ordinal, equal := column.Size(), false
	switch {
	case r.addresses != nil:
		at, found := slices.BinarySearchFunc(r.addresses.Ordinals, p.text, func(ordinal uint32, text []byte) int {
			return fieldvalue.CompareAddresses(column.Text(ordinal), text)
		})
		ordinal, equal = uint32(at), found
	case r.key.kind == textKey:
		ordinal, equal = column.FindText(string(p.text))
	case !p.beyond:
		ordinal, equal = column.FindKey(p.number)
	}
	rank := 2 * (uint64(ordinal) + 1)
	if !equal || p.between {
		rank--
	}
	if r.key.Descending {
		return descendingBase - rank
	}
	return rank
}

// computed returns the number of a document, false when it has no value. As in Elasticsearch, sums of integers overflow, and the
// average and median of integral types are rounded half up; those of float have its precision.
func (r *ranker) computed(doc uint32) (number uint64, some bool) {
	r.ordinals = r.ordinals[:0]
	r.values.each(doc, func(ordinal uint32) { r.ordinals = append(r.ordinals, ordinal) })
	if len(r.ordinals) == 0 {
		return 0, false
	}
	if r.key.kind == computedIntKey {
		// The lowest and highest integer are those next to them, because ranks have room for missing values.
		return query.SignedKey(min(max(r.computeInt(), math.MinInt64+1), math.MaxInt64-1)), true
	}
	v := r.computeFloat()
	if fieldtype.Of(r.key.Field.Type).Bits == 32 {
		v = float64(float32(v))
	}
	return query.FloatKey(v), true
}

// computeInt computes the sum, average or median of integers.
func (r *ranker) computeInt() int64 {
	n := len(r.ordinals)
	at := func(i int) int64 { return integer(r.key.Field.Type, r.values.column.Key(r.ordinals[i])) }
	if r.key.Mode == "median" {
		if n%2 == 1 {
			return at(n / 2)
		}
		return roundHalfUp((float64(at(n/2-1)) + float64(at(n/2))) / 2) // the sum may need more than 64 bits
	}
	sum := int64(0)
	for i := range n {
		sum += at(i)
	}
	if r.key.Mode == "avg" && n > 1 {
		return roundHalfUp(float64(sum) / float64(n))
	}
	return sum
}

// roundHalfUp rounds to the nearest integer, a half up.
func roundHalfUp(v float64) int64 {
	whole := math.Floor(v)
	if v-whole >= 0.5 {
		whole++
	}
	switch {
	case whole >= 1<<63:
		return math.MaxInt64
	case whole < -1<<63:
		return math.MinInt64
	default:
		return int64(whole)
	}
}

// computeFloat computes the sum, average or median of floating-point numbers.
func (r *ranker) computeFloat() float64 {
	n := len(r.ordinals)
	at := func(i int) float64 { return query.Number(r.key.Field, r.values.column.Key(r.ordinals[i])) }
	if r.key.Mode == "median" {
		if n%2 == 1 {
			return at(n / 2)
		}
		return (at(n/2-1) + at(n/2)) / 2
	}
	sum := 0.0
	for i := range n {
		sum += at(i)
	}
	if r.key.Mode == "avg" {
		return sum / float64(n)
	}
	return sum
}
