package match

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	"tutti/internal/base/order"
	"tutti/internal/filter/query"
	"tutti/internal/index/embedded/segment"
	"tutti/internal/index/embedded/segment/fieldvalue"
)

// span is a condition on ranges: they must contain some value between lo and hi, which are ends as in a segment.
type span struct{ lo, hi string }

// spansOf returns the conditions of a node on a field of ranges: one, or single values in ascending order.
func spansOf(n *query.Node) []span {
	end := n.Field.End()
	if n.Op == query.Range {
		lo, hi, some := query.KeyRange(end, n.From, n.To)
		if !some {
			return nil
		}
		return []span{{fieldvalue.KeyEnd(lo), fieldvalue.KeyEnd(hi)}}
	}
	var spans []span
	for _, term := range n.Terms {
		at, ok := endOf(end, term)
		if ok {
			spans = append(spans, span{at, at})
		}
	}
	order.Sort(spans, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
	return spans
}

// endOf returns the end of a range for a value of Node.Terms.
func endOf(f query.Field, term string) (string, bool) {
	if f.Type == "ip" {
		address, err := netip.ParseAddr(term)
		return fieldvalue.AddressEnd(address), err == nil
	}
	key, ok := query.Key(f, term)
	return fieldvalue.KeyEnd(key), ok
}

// rangeOrdinals returns the ordinals of the ranges that meet one of the conditions, in ascending order.
func rangeOrdinals(ctx context.Context, column *segment.Column, spans []span) []uint32 {
	var ordinals []uint32
	if len(spans) == 0 {
		return nil
	}
	texts := column.Texts()
	for ordinal := range column.Size() {
		if ordinal%BatchSize == 0 && ctx.Err() != nil {
			break
		}
		lo, hi := fieldvalue.RangeEnds(texts.At(ordinal))
		at, _ := slices.BinarySearchFunc(spans, unsafeString(lo), func(s span, lo string) int { return cmp.Compare(s.hi, lo) })
		if at == len(spans) {
			break // ranges are in the order of their lower ends
		}
		if spans[at].lo <= unsafeString(hi) {
			ordinals = append(ordinals, ordinal)
		}
	}
	return ordinals
}
