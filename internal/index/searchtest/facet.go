package searchtest

import (
	"cmp"
	"math"
	"slices"

	"tutti/internal/index"
	"tutti/internal/index/query"
	"tutti/internal/sqon"
)

// narrowed is what a facet counts in (CONTRACT section 5).
type narrowed struct {
	// documents are those that match it, rows for each of them those that hold the field's values, as far as they count.
	documents []*element
	rows      [][]*element
}

// narrow returns what a facet on a field counts in. Without themselves, what the filter and-s to the rest and is about that
// field alone does not narrow it. Where a pivot has clauses that it does not bind there are two readings, which differ in
// whether they are taken out of the pivot before or after those on the field are left out. Either is right, unless the pivot becomes
// several alternatives: what it and-s to them stands in each of them then, and is left out before.
func (o *oracle) narrow(f sqon.Filter, name string, themselves bool) ([]narrowed, error) {
	apart, err := f.Hoist(o.fields)
	if err != nil {
		return nil, err
	}
	apart = apart.Normalize()
	filters := []sqon.Filter{apart, f.Normalize()}
	if !themselves && split(apart.Root) {
		filters = filters[1:]
	}
	var readings []narrowed
	for _, f := range filters {
		field := o.fields.byName[name].Field
		if f.Root != nil && !themselves {
			f.Root = o.without(f.Root, field)
		}
		in, err := o.narrowedBy(f, field)
		if err != nil {
			return nil, err
		}
		readings = append(readings, in)
	}
	return readings, nil
}

// split reports whether a pivot of a filter has become alternatives.
func split(n *sqon.Node) bool {
	return n != nil && (n.Split != "" || slices.ContainsFunc(n.Content, split))
}

// narrowedBy returns what counts of a field under what remains of the filter of a facet.
func (o *oracle) narrowedBy(f sqon.Filter, field query.Field) (narrowed, error) {
	apart, err := f.Hoist(o.fields)
	if err != nil {
		return narrowed{}, err
	}
	apart = apart.Normalize()
	var out narrowed
	for _, d := range o.documents {
		if f.Root != nil && !o.holds(f.Root, scope{document: d}) {
			continue
		}
		rows := d.at(field.Row())
		if apart.Root != nil && field.Row() != "" {
			rows = slices.DeleteFunc(rows, func(row *element) bool {
				at := scope{document: d}.with(row)
				return !o.counts(apart.Root, at, row) || !o.meant(f.Root, at, row)
			})
		}
		out.documents = append(out.documents, d)
		out.rows = append(out.rows, rows)
	}
	return out, nil
}

// meant reports whether a nested row can be the one of each pivot on its path that the filter and-s at the top.
func (o *oracle) meant(n *sqon.Node, at scope, row *element) bool {
	switch {
	case n.Pivot == row.path:
		return o.truth(n, at) != no
	case n.Pivot == "" && n.Op == sqon.And:
		return !slices.ContainsFunc(n.Content, func(member *sqon.Node) bool { return !o.meant(member, at, row) })
	default:
		return true
	}
}

// truth is how far a filter holds of an element, of which alone something is known: what else its document holds, the documents of
// the facet decide.
type truth int

const (
	no truth = iota
	perhaps
	yes
)

// truth returns how far a node holds at a scope whose elements are bound.
func (o *oracle) truth(n *sqon.Node, at scope) truth {
	if n.Pivot == "" || at.bound[n.Pivot] != nil {
		return o.bodyTruth(n, at)
	}
	above := at.of(o.fields.byName[n.Pivot].Nested)
	if above == at.document {
		return perhaps
	}
	out := no
	for _, row := range above.at(n.Pivot) {
		out = max(out, o.bodyTruth(n, at.with(row)))
	}
	return out
}

// bodyTruth is truth without the pivot.
func (o *oracle) bodyTruth(n *sqon.Node, at scope) truth {
	least, most := yes, no
	for _, member := range n.Content {
		of := o.truth(member, at)
		least, most = min(least, of), max(most, of)
	}
	switch n.Op {
	case sqon.And:
		return least
	case sqon.Or:
		return most
	case sqon.Not:
		return yes - most
	default:
		for _, name := range n.Fields {
			switch {
			case at.of(o.fields.byName[name].Nested) == at.document:
				most = max(most, perhaps)
			case o.clause(n, name, at):
				most = yes
			}
		}
		return most
	}
}

// without returns n without what it and-s to the rest about a field alone, at the top or below a pivot; nil when that is all.
// A pivot on what the field is not below says something else too: that there is such an element. So that stays.
func (o *oracle) without(n *sqon.Node, f query.Field) *sqon.Node {
	out, body := *n, *n
	if foreign(n, f) {
		body.Pivot = ""
		out.Op, out.Content, out.Fields, out.Values = sqon.And, nil, nil, nil
		if o.about(&body, f) {
			return &out
		}
	} else if o.about(n, f) {
		return nil
	}
	if n.Op != sqon.And || len(n.Content) == 0 {
		return n
	}
	out.Content = nil
	for _, member := range n.Content {
		if rest := o.without(member, f); rest != nil {
			out.Content = append(out.Content, rest)
		}
	}
	if len(out.Content) == 0 && !foreign(n, f) {
		return nil
	}
	return &out
}

// foreign reports whether n has a pivot that a field is not below.
func foreign(n *sqon.Node, f query.Field) bool {
	return n.Pivot != "" && !slices.Contains(f.Nested, n.Pivot)
}

// about reports whether n has clauses and says nothing but of a field.
func (o *oracle) about(n *sqon.Node, f query.Field) bool {
	if foreign(n, f) {
		return false
	}
	if !n.Group() {
		return !slices.ContainsFunc(n.Fields, func(name string) bool { return o.fields.byName[name].Path != f.Path })
	}
	return len(n.Content) > 0 && !slices.ContainsFunc(n.Content, func(member *sqon.Node) bool { return !o.about(member, f) })
}

// counts reports whether a nested row counts under a filter that its document matches: whether all that the filter and-s at the
// top about the rows of its path holds of it.
func (o *oracle) counts(n *sqon.Node, at scope, row *element) bool {
	switch {
	case n.Pivot != "":
		return n.Pivot != row.path || o.body(n, at)
	case n.Op == sqon.And:
		return !slices.ContainsFunc(n.Content, func(member *sqon.Node) bool { return !o.counts(member, at, row) })
	case n.Op == sqon.Or && n.Split == row.path:
		return slices.ContainsFunc(n.Content, func(member *sqon.Node) bool { return o.counts(member, at, row) })
	case n.Group() || slices.ContainsFunc(n.Fields, func(name string) bool { return o.fields.byName[name].Row() != row.path }):
		return true
	case n.Op == sqon.All && len(n.Values) > 0:
		// Its values may be those of several elements, of which each has one.
		n = o.anyOf(n)
	}
	return o.body(n, at)
}

// anyOf returns the in of an all, the same node each time.
func (o *oracle) anyOf(n *sqon.Node) *sqon.Node {
	if o.any == nil {
		o.any = map[*sqon.Node]*sqon.Node{}
	}
	if o.any[n] == nil {
		in := *n
		in.Op = sqon.In
		o.any[n] = &in
	}
	return o.any[n]
}

// facet answers a facet whose field has been narrowed. filters are those of its buckets.
func (o *oracle) facet(ask index.Facet, in narrowed, filters []sqon.Filter) index.FacetResult {
	c := classOf(ask.Field.Type)
	var out index.FacetResult
	found := o.byValue(ask.Field, in)
	if ask.Buckets != nil {
		out.Buckets = o.buckets(ask, found, filters)
	}
	if ask.Missing {
		for _, d := range in.documents {
			if len(valuesOf(ask.Field, d.at(ask.Field.Row()))) == 0 {
				out.Missing++
			}
		}
	}
	if ask.Cardinality > 0 {
		out.Cardinality = int64(len(found))
	}
	if !c.numeric() {
		return out
	}
	if ask.Stats {
		out.Stats = statsOf(ask.Field, in)
	}
	if ask.Histogram > 0 {
		out.Histogram = histogram(found, c, ask.Histogram)
	}
	for _, r := range ask.Ranges {
		out.Ranges = append(out.Ranges, countIn(found, c, r))
	}
	return out
}

// holders is the documents that have a value, in the order of their ids.
type holders struct {
	value     value
	documents []*element
}

// byValue returns the values that count, in their order.
func (o *oracle) byValue(f query.Field, in narrowed) []holders {
	c := classOf(f.Type)
	byKey := map[string]*holders{}
	for i, d := range in.documents {
		for _, v := range valuesOf(f, in.rows[i]) {
			h := byKey[key(c, v)]
			if h == nil {
				h = &holders{value: v}
				byKey[key(c, v)] = h
			}
			if !slices.Contains(h.documents, d) {
				h.documents = append(h.documents, d)
			}
		}
	}
	var all []holders
	for _, h := range byKey {
		all = append(all, *h)
	}
	slices.SortFunc(all, func(a, b holders) int { return compare(c, a.value, b.value) })
	return all
}

// buckets returns those of the most documents.
func (o *oracle) buckets(ask index.Facet, found []holders, filters []sqon.Filter) []index.Bucket {
	c := classOf(ask.Field.Type)
	sorted := slices.Clone(found)
	slices.SortStableFunc(sorted, func(a, b holders) int { return cmp.Compare(len(b.documents), len(a.documents)) })
	var out []index.Bucket
	for _, h := range sorted[:min(len(sorted), ask.Buckets.Max)] {
		b := index.Bucket{Key: key(c, h.value), Count: int64(len(h.documents))}
		for _, d := range h.documents[:min(len(h.documents), ask.Buckets.TopHits)] {
			b.TopHits = append(b.TopHits, index.Hit{ID: d.id})
		}
		for _, f := range filters {
			n := int64(0)
			for _, d := range h.documents {
				if f.Root == nil || o.holds(f.Root, scope{document: d}) {
					n++
				}
			}
			b.Filters = append(b.Filters, n)
		}
		out = append(out, b)
	}
	return out
}

// statsOf returns the statistics over values, each as often as it stands.
func statsOf(f query.Field, in narrowed) index.Stats {
	out := index.Stats{Min: math.Inf(1), Max: math.Inf(-1)}
	for _, rows := range in.rows {
		for _, v := range valuesOf(f, rows) {
			x := float(classOf(f.Type), v)
			out.Min, out.Max, out.Sum, out.Count = min(out.Min, x), max(out.Max, x), out.Sum+x, out.Count+1
		}
	}
	if out.Count == 0 {
		return index.Stats{}
	}
	out.Avg = out.Sum / float64(out.Count)
	return out
}

// histogram returns the documents by interval.
func histogram(found []holders, c class, interval float64) []index.Interval {
	var out []index.Interval
	slot := func(h holders) float64 { return math.Floor(float(c, h.value) / interval) }
	if len(found) == 0 {
		return nil
	}
	for at := slot(found[0]); at <= slot(found[len(found)-1]); at++ {
		var here []*element
		for _, h := range found {
			if slot(h) == at {
				here = append(here, h.documents...)
			}
		}
		out = append(out, index.Interval{Key: at * interval, Count: distinct(here)})
	}
	return out
}

// countIn returns the documents with a value in a range.
func countIn(found []holders, c class, r index.NumberRange) int64 {
	var here []*element
	for _, h := range found {
		if x := float(c, h.value); (r.From == nil || x >= *r.From) && (r.To == nil || x < *r.To) {
			here = append(here, h.documents...)
		}
	}
	return distinct(here)
}

// distinct counts documents once.
func distinct(documents []*element) int64 {
	seen := map[*element]bool{}
	for _, d := range documents {
		seen[d] = true
	}
	return int64(len(seen))
}
