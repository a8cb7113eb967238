package oracle

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/tools/searchtest/model"
)

// FacetScope is the documents and rows that a facet counts (CONTRACT section 5).
type FacetScope struct {
	// Documents are the documents that match, rows for each of them the rows with counted values.
	Documents []*model.Element
	Rows      [][]*model.Element
}

// FacetScopes returns the scopes of a facet on a field. Unless themselves is set, conjuncts of the filter that are only about the
// field do not apply. When a pivot has clauses that it does not bind, there are two valid scopes: these clauses are moved out of
// the pivot before or after the clauses on the field are removed. When the pivot is split into alternatives, only the second
// scope is valid, because the conditions beside the alternatives are copied into each of them.
func (o *Oracle) FacetScopes(f sqon.Filter, name string, themselves bool) ([]FacetScope, error) {
	apart, err := f.Hoist(o.Fields)
	if err != nil {
		return nil, err
	}
	apart = apart.Normalize()
	filters := []sqon.Filter{apart, f.Normalize()}
	if !themselves && split(apart.Root) {
		filters = filters[1:]
	}
	var scopes []FacetScope
	for _, f := range filters {
		field := o.Fields.ByName[name].Field
		if f.Root != nil && !themselves {
			f.Root = o.withoutField(f.Root, field)
		}
		in, err := o.facetScope(f, field)
		if err != nil {
			return nil, err
		}
		scopes = append(scopes, in)
	}
	return scopes, nil
}

// split reports whether a pivot of a filter has been split into alternatives.
func split(n *sqon.Node) bool {
	return n != nil && (n.Split != "" || slices.ContainsFunc(n.Content, split))
}

// facetScope returns the scope of a facet on a field, with a filter without the conjuncts that do not apply to it.
func (o *Oracle) facetScope(f sqon.Filter, field query.Field) (FacetScope, error) {
	apart, err := f.Hoist(o.Fields)
	if err != nil {
		return FacetScope{}, err
	}
	apart = apart.Normalize()
	var out FacetScope
	for _, d := range o.Documents {
		if f.Root != nil && !o.holds(f.Root, scope{document: d}) {
			continue
		}
		rows := d.At(field.Row())
		if apart.Root != nil && field.Row() != "" {
			rows = slices.DeleteFunc(rows, func(row *model.Element) bool {
				at := scope{document: d}.with(row)
				return !o.countsElement(apart.Root, at, row) || !o.canBind(f.Root, at, row)
			})
		}
		out.Documents = append(out.Documents, d)
		out.Rows = append(out.Rows, rows)
	}
	return out, nil
}

// canBind reports whether a nested row can be the element of each pivot on its path among the conjuncts at the top of the filter.
func (o *Oracle) canBind(n *sqon.Node, at scope, row *model.Element) bool {
	switch {
	case n.Pivot == row.Path:
		return o.truth(n, at) != no
	case n.Pivot == "" && n.Op == sqon.And:
		return !slices.ContainsFunc(n.Content, func(member *sqon.Node) bool { return !o.canBind(member, at, row) })
	default:
		return true
	}
}

// truth is whether a filter holds for an element if the rest of its document is unknown; the filter of the facet's documents decides
// about the rest.
type truth int

const (
	no truth = iota
	perhaps
	yes
)

// truth returns whether a node holds in a scope.
func (o *Oracle) truth(n *sqon.Node, at scope) truth {
	if n.Pivot == "" || at.bound[n.Pivot] != nil {
		return o.bodyTruth(n, at)
	}
	above := at.of(o.Fields.ByName[n.Pivot].Nested)
	if above == at.document {
		return perhaps
	}
	out := no
	for _, row := range above.At(n.Pivot) {
		out = max(out, o.bodyTruth(n, at.with(row)))
	}
	return out
}

// bodyTruth is truth without the pivot.
func (o *Oracle) bodyTruth(n *sqon.Node, at scope) truth {
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
			case at.of(o.Fields.ByName[name].Nested) == at.document:
				most = max(most, perhaps)
			case o.clause(n, name, at):
				most = yes
			}
		}
		return most
	}
}

// withoutField returns n without the conjuncts that are only about a field, at the top or below a pivot; nil when nothing is left.
// A pivot that does not contain the field remains, because it also requires an element to exist.
func (o *Oracle) withoutField(n *sqon.Node, f query.Field) *sqon.Node {
	out, body := *n, *n
	if foreign(n, f) {
		body.Pivot = ""
		out.Op, out.Content, out.Fields, out.Values = sqon.And, nil, nil, nil
		if o.onlyAbout(&body, f) {
			return &out
		}
	} else if o.onlyAbout(n, f) {
		return nil
	}
	if n.Op != sqon.And || len(n.Content) == 0 {
		return n
	}
	out.Content = nil
	for _, member := range n.Content {
		if rest := o.withoutField(member, f); rest != nil {
			out.Content = append(out.Content, rest)
		}
	}
	if len(out.Content) == 0 && !foreign(n, f) {
		return nil
	}
	return &out
}

// foreign reports whether n has a pivot that does not contain a field.
func foreign(n *sqon.Node, f query.Field) bool {
	return n.Pivot != "" && !slices.Contains(f.Nested, n.Pivot)
}

// onlyAbout reports whether n has clauses and all are about a field.
func (o *Oracle) onlyAbout(n *sqon.Node, f query.Field) bool {
	if foreign(n, f) {
		return false
	}
	if !n.Group() {
		return !slices.ContainsFunc(n.Fields, func(name string) bool { return o.Fields.ByName[name].Path != f.Path })
	}
	return len(n.Content) > 0 && !slices.ContainsFunc(n.Content, func(member *sqon.Node) bool { return !o.onlyAbout(member, f) })
}

// countsElement reports whether a nested row of a matching document is counted: whether all conjuncts at the top of the filter
// about rows of its path hold for it.
func (o *Oracle) countsElement(n *sqon.Node, at scope, row *model.Element) bool {
	switch {
	case n.Pivot != "":
		return n.Pivot != row.Path || o.body(n, at)
	case n.Op == sqon.And:
		return !slices.ContainsFunc(n.Content, func(member *sqon.Node) bool { return !o.countsElement(member, at, row) })
	case n.Op == sqon.Or && n.Split == row.Path:
		return slices.ContainsFunc(n.Content, func(member *sqon.Node) bool { return o.countsElement(member, at, row) })
	case n.Group() || slices.ContainsFunc(n.Fields, func(name string) bool { return o.Fields.ByName[name].Row() != row.Path }):
		return true
	case n.Op == sqon.All && len(n.Values) > 0:
		// Several elements may have one of its values each.
		n = o.anyOf(n)
	}
	return o.body(n, at)
}

// anyOf returns an In clause with the values of an All clause, the same node each time.
func (o *Oracle) anyOf(n *sqon.Node) *sqon.Node {
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

// Facet returns the result of a facet in its scope. filters are those of its buckets.
func (o *Oracle) Facet(ask index.Facet, in FacetScope, filters []sqon.Filter) index.FacetResult {
	c := model.ClassOf(ask.Field.Type)
	var out index.FacetResult
	found := o.byValue(ask.Field, in)
	if ask.Buckets != nil && query.Countable(ask.Field.Type) {
		out.Buckets = o.buckets(ask, found, filters)
	}
	if ask.Missing {
		for _, d := range in.Documents {
			if len(model.ValuesOf(ask.Field, d.At(ask.Field.Row()))) == 0 {
				out.Missing++
			}
		}
	}
	if ask.Cardinality > 0 {
		out.Cardinality = int64(len(found))
		if o.Signed && ask.Field.Type == "unsigned_long" {
			out.Cardinality = int64(len(slices.CompactFunc(slices.Clone(found), func(a, b valueDocuments) bool { return model.Float(c, a.value) == model.Float(c, b.value) })))
		}
	}
	if !c.Numeric() {
		return out
	}
	if ask.Stats {
		out.Stats = statsOf(ask.Field, in)
	}
	if ask.Histogram > 0 {
		out.Histogram = histogram(found, ask.Field, ask.Histogram)
	}
	for _, r := range ask.Ranges {
		out.Ranges = append(out.Ranges, countIn(found, c, r))
	}
	return out
}

// valueDocuments is a value and its documents, sorted by id.
type valueDocuments struct {
	value     model.Value
	documents []*model.Element
}

// byValue returns the counted values in order.
func (o *Oracle) byValue(f query.Field, in FacetScope) []valueDocuments {
	c := model.ClassOf(f.Type)
	byKey := map[string]*valueDocuments{}
	for i, d := range in.Documents {
		for _, v := range model.ValuesOf(f, in.Rows[i]) {
			key := model.Key(c, v)
			if o.ZerosApart && v.NegativeZero {
				key = "-0"
			}
			h := byKey[key]
			if h == nil {
				h = &valueDocuments{value: v}
				byKey[key] = h
			}
			if !slices.Contains(h.documents, d) {
				h.documents = append(h.documents, d)
			}
		}
	}
	var all []valueDocuments
	for _, h := range byKey {
		all = append(all, *h)
	}
	slices.SortFunc(all, func(a, b valueDocuments) int {
		if c == model.AddressClass { // buckets of addresses are in the order of their texts
			return strings.Compare(a.value.Text, b.value.Text)
		}
		if byValue := model.Compare(c, a.value, b.value); byValue != 0 || !a.value.NegativeZero {
			return byValue
		}
		return -1
	})
	return all
}

// buckets returns the buckets with the most documents.
func (o *Oracle) buckets(ask index.Facet, found []valueDocuments, filters []sqon.Filter) []index.Bucket {
	c := model.ClassOf(ask.Field.Type)
	sorted := slices.Clone(found)
	byCount := func(a, b valueDocuments) int { return cmp.Compare(len(b.documents), len(a.documents)) }
	slices.SortStableFunc(sorted, byCount)
	if o.ZerosApart && c == model.FractionClass {
		sorted = addZeros(sorted[:min(len(sorted), ask.Buckets.Max+1)])
		slices.SortFunc(sorted, func(a, b valueDocuments) int { return cmp.Or(byCount(a, b), model.Compare(c, a.value, b.value)) })
	}
	var out []index.Bucket
	for _, h := range sorted[:min(len(sorted), ask.Buckets.Max)] {
		b := index.Bucket{Key: model.Key(c, h.value), Count: int64(len(h.documents))}
		for _, d := range h.documents[:min(len(h.documents), ask.Buckets.TopHits)] {
			b.TopHits = append(b.TopHits, index.Hit{ID: d.ID})
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

// addZeros adds the documents of one of the zeros to those of the other, of which those with both are there twice.
func addZeros(values []valueDocuments) []valueDocuments {
	var out []valueDocuments
	zero := -1
	for _, h := range values {
		switch {
		case h.value.Number.Sign() != 0:
			out = append(out, h)
		case zero < 0:
			zero = len(out)
			out = append(out, h)
		default:
			both := slices.Concat(out[zero].documents, h.documents)
			slices.SortFunc(both, func(a, b *model.Element) int { return cmp.Compare(a.ID, b.ID) })
			out[zero].documents = both
		}
	}
	return out
}

// statsOf returns the statistics over values, with duplicates.
func statsOf(f query.Field, in FacetScope) index.Stats {
	out := index.Stats{Min: math.Inf(1), Max: math.Inf(-1)}
	for _, rows := range in.Rows {
		for _, v := range model.ValuesOf(f, rows) {
			x := model.Float(model.ClassOf(f.Type), v)
			out.Min, out.Max, out.Sum, out.Count = min(out.Min, x), max(out.Max, x), out.Sum+x, out.Count+1
		}
	}
	if out.Count == 0 {
		return index.Stats{}
	}
	out.Avg = out.Sum / float64(out.Count)
	return out
}

// histogram returns the number of documents by interval.
func histogram(found []valueDocuments, f query.Field, interval float64) []index.Interval {
	var out []index.Interval
	slot := func(h valueDocuments) float64 {
		v := model.Float(model.ClassOf(f.Type), h.value)
		if f.Scale != 0 { // as engines multiply
			v = math.Round(v*f.Scale) * (1 / f.Scale)
		}
		return math.Floor(v / interval)
	}
	if len(found) == 0 {
		return nil
	}
	for at := slot(found[0]); at <= slot(found[len(found)-1]); at++ {
		var here []*model.Element
		for _, h := range found {
			if slot(h) == at {
				here = append(here, h.documents...)
			}
		}
		out = append(out, index.Interval{Key: at * interval, Count: distinct(here)})
	}
	return out
}

// countIn returns the number of documents with a value in a range.
func countIn(found []valueDocuments, c model.Class, r index.NumberRange) int64 {
	var here []*model.Element
	for _, h := range found {
		if x := model.Float(c, h.value); (r.From == nil || x >= *r.From) && (r.To == nil || x < *r.To) {
			here = append(here, h.documents...)
		}
	}
	return distinct(here)
}

// distinct returns the number of distinct documents.
func distinct(documents []*model.Element) int64 {
	seen := map[*model.Element]bool{}
	for _, d := range documents {
		seen[d] = true
	}
	return int64(len(seen))
}
