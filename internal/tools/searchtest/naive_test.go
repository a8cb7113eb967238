package searchtest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/index/document"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/searchtest/draw"
	"tutti/internal/tools/searchtest/model"
	"tutti/internal/tools/searchtest/oracle"
)

// naive is an engine that evaluates query's tree row by row, to test query's lowering against the oracle without a real engine. It
// shares the oracle's handling of values and facets, so it does not test those.
type naive struct {
	index.Index
	aliases map[string]*naiveAlias
	// fault, if set, modifies requests before they are evaluated, so that the suite has errors to find.
	fault func(*index.SearchRequest)
}

// naiveAlias is the state of one alias.
type naiveAlias struct {
	fields  *model.FieldSet
	sources map[string]string
	oracle  *oracle.Oracle
}

func (x *naive) Encode(dst []byte, w core.Write) ([]byte, int, int) {
	from := len(dst)
	dst = append(dst, w.Document...)
	return dst, from, len(dst)
}

func (x *naive) Ensure(_ context.Context, spec index.Spec) error {
	tree, err := mapping.Parse(spec.Mapping)
	if err != nil {
		return err
	}
	if x.aliases == nil {
		x.aliases = map[string]*naiveAlias{}
	}
	fields := model.FieldsOf(tree)
	x.aliases[spec.Alias] = &naiveAlias{fields: fields, sources: map[string]string{}, oracle: &oracle.Oracle{Fields: fields}}
	return nil
}

func (x *naive) Mapping(_ context.Context, alias string) (json.RawMessage, error) {
	return x.aliases[alias].fields.Tree.Render()
}

func (x *naive) Write(_ context.Context, b core.Batch) ([]core.Result, error) {
	a := x.aliases[b.Index]
	results := make([]core.Result, len(b.Items))
	for i, item := range b.Items {
		var c document.Checker
		if item.Op == core.OpDelete {
			delete(a.sources, item.ID)
			results[i].Outcome = core.OutcomeRemoved
			continue
		}
		if _, err := c.Check(a.fields.Tree, b.Document(i), nil); err != nil {
			results[i] = core.Result{Outcome: core.OutcomeRejected, Reason: err.Error()}
			continue
		}
		a.sources[item.ID] = string(b.Document(i))
		results[i].Outcome = core.OutcomeIndexed
	}
	return results, nil
}

func (x *naive) Refresh(_ context.Context, alias string) error {
	a := x.aliases[alias]
	a.oracle = &oracle.Oracle{Fields: a.fields}
	return a.oracle.Read(a.sources)
}

// at returns an alias in its current state.
func (x *naive) at(ctx context.Context, alias string) (*naiveAlias, error) {
	if ctx.Err() != nil {
		return nil, core.WrapError(core.CodeUnavailable, "the search was given up", ctx.Err())
	}
	a := x.aliases[alias]
	if a == nil {
		return nil, core.NewError(core.CodeIndexBlocked, "there is no index "+alias)
	}
	now := *a
	now.sources = maps.Clone(a.sources)
	return &now, nil
}

func (x *naive) Search(ctx context.Context, alias string, reqs []index.SearchRequest) ([]index.SearchResult, error) {
	a, err := x.at(ctx, alias)
	if err != nil {
		return nil, err
	}
	out := make([]index.SearchResult, len(reqs))
	for i, r := range reqs {
		if x.fault != nil {
			x.fault(&r)
		}
		if err := checkRequest(r); err != nil {
			return nil, err
		}
		documents := a.find(r.Filter)
		if r.Total {
			out[i].Total = int64(len(documents))
		}
		for _, f := range r.Facets {
			facet := a.facet(f, documents)
			if len(facet.Histogram) > index.MaxIntervals {
				return nil, f.TooManyIntervals()
			}
			out[i].Facets = append(out[i].Facets, facet)
		}
		if h := r.Hits; h != nil {
			sorted := a.oracle.Sorted(documents, h.Sort)
			from := h.From
			if h.After != nil {
				var id string
				if err := json.Unmarshal(h.After[len(h.After)-1], &id); err != nil {
					return nil, err
				}
				from = 1 + slices.IndexFunc(sorted, func(d *model.Element) bool { return d.ID == id })
			}
			sorted = sorted[min(from, len(sorted)):]
			out[i].Hits = a.hits(sorted[:min(h.Size, len(sorted))], h.Sort, h.Source)
		}
	}
	return out, nil
}

// checkRequest returns an error for an invalid request.
func checkRequest(r index.SearchRequest) error {
	for i := range r.Facets {
		if err := r.Facets[i].Check(); err != nil {
			return err
		}
	}
	if r.Hits == nil {
		return nil
	}
	for _, s := range r.Hits.Sort {
		if err := s.Check(); err != nil {
			return err
		}
	}
	return nil
}

func (x *naive) Stream(ctx context.Context, alias string, r index.StreamRequest, each func([]index.Hit) error) error {
	a, err := x.at(ctx, alias)
	if err != nil {
		return err
	}
	if err := checkRequest(index.SearchRequest{Hits: &index.HitsRequest{Sort: r.Sort}}); err != nil {
		return err
	}
	for _, d := range a.oracle.Sorted(a.find(r.Filter), r.Sort) {
		if err := each(a.hits([]*model.Element{d}, r.Sort, r.Source)); err != nil {
			return err
		}
	}
	return nil
}

// hits returns documents with their ids as sort values, so the last key of the order must be one that every document has.
func (a *naiveAlias) hits(documents []*model.Element, by []index.Sort, source index.Source) []index.Hit {
	hits := make([]index.Hit, len(documents))
	for i, d := range documents {
		hits[i] = index.Hit{ID: d.ID}
		for _, s := range by {
			place := json.RawMessage("null")
			if a.oracle.RanksBy(s)[d] > 0 {
				place = json.RawMessage(draw.Quoted(d.ID))
			}
			hits[i].Sort = append(hits[i].Sort, place)
		}
		if !source.None {
			hits[i].Source = []byte(a.sources[d.ID])
		}
	}
	return hits
}

func (a *naiveAlias) find(n *query.Node) []*model.Element {
	return slices.DeleteFunc(slices.Clone(a.oracle.Documents), func(d *model.Element) bool { return n != nil && !a.holds(n, d) })
}

func (a *naiveAlias) facet(f index.Facet, documents []*model.Element) index.FacetResult {
	in := oracle.FacetScope{Documents: documents}
	for _, d := range documents {
		in.Rows = append(in.Rows, slices.DeleteFunc(d.At(f.Field.Row()), func(row *model.Element) bool {
			return f.Elements != nil && !a.holds(f.Elements, row)
		}))
	}
	out := a.oracle.Facet(f, in, nil)
	for i, b := range out.Buckets {
		holders := a.holders(f.Field, in, b.Key)
		for _, n := range f.Buckets.Filters {
			count := int64(0)
			for _, d := range holders {
				if n == nil || a.holds(n, d) {
					count++
				}
			}
			out.Buckets[i].Filters = append(out.Buckets[i].Filters, count)
		}
	}
	return out
}

func (a *naiveAlias) holders(f query.Field, in oracle.FacetScope, bucket string) (holders []*model.Element) {
	for i, d := range in.Documents {
		if slices.ContainsFunc(model.ValuesOf(f, in.Rows[i]), func(v model.Value) bool { return model.Key(model.ClassOf(f.Type), v) == bucket }) {
			holders = append(holders, d)
		}
	}
	return holders
}

// holds reports whether a tree holds for a row of its scope.
func (a *naiveAlias) holds(n *query.Node, row *model.Element) bool {
	one := func(want bool) bool {
		return slices.ContainsFunc(n.Children, func(child *query.Node) bool { return a.holds(child, row) == want })
	}
	switch n.Op {
	case query.Everything:
		return true
	case query.Nothing:
		return false
	case query.And:
		return !one(false)
	case query.Or:
		return one(true)
	case query.Not:
		return !a.holds(n.Children[0], row)
	case query.Some:
		if n.Path == row.Path || !strings.HasPrefix(n.Path, row.Path) {
			panic(fmt.Sprintf("Some of %q at %q", n.Path, row.Path))
		}
		return slices.ContainsFunc(row.At(n.Path), func(r *model.Element) bool { return a.holds(n.Children[0], r) })
	default:
		if n.Field.Path == "_id" {
			return n.Op == query.Exists || slices.Contains(n.Terms, row.ID)
		}
		if n.Field.Row() != row.Path {
			panic(fmt.Sprintf("a clause on %q at %q", n.Field.Path, row.Path))
		}
		if a.fields.Lowercased(n.Field.Path) {
			n = lowercased(n)
		}
		return slices.ContainsFunc(row.Values[n.Field.Path], func(v model.Value) bool { return clauseHolds(n, v) })
	}
}

// lowercased returns a clause with its texts in lower case.
func lowercased(n *query.Node) *query.Node {
	out := *n
	out.Terms, out.Patterns = nil, nil
	for _, term := range n.Terms {
		out.Terms = append(out.Terms, strings.ToLower(term))
	}
	for _, p := range n.Patterns {
		out.Patterns = append(out.Patterns, sqon.Pattern(strings.ToLower(string(p))))
	}
	return &out
}

func clauseHolds(n *query.Node, v model.Value) bool {
	if end, ranged := model.EndOf(n.Field); ranged && n.Op != query.Exists {
		return n.Op == query.Range && v.Range.MeetsPeriod(n.From.Time, n.To.Time) || slices.ContainsFunc(n.Terms, func(term string) bool {
			at, ok := model.StoredValue(end, term)
			return ok && v.Range.Meets(at, at)
		})
	}
	c := model.ClassOf(n.Field.Type)
	switch n.Op {
	case query.Terms:
		return slices.ContainsFunc(n.Terms, func(term string) bool { return isTerm(c, v, term) })
	case query.Patterns:
		return slices.ContainsFunc(n.Patterns, func(p sqon.Pattern) bool {
			return n.Fold && p.MatchFold(v.Text) || p.Match(v.Text)
		})
	case query.Range:
		return (!n.From.Set || beyond(n.Field, v, n.From, 1)) && (!n.To.Set || beyond(n.Field, v, n.To, -1))
	default:
		return true
	}
}

func isTerm(c model.Class, v model.Value, term string) bool {
	if c == model.FractionClass {
		x, err := strconv.ParseFloat(term, 64)
		return err == nil && x == model.Float(c, v)
	}
	return model.Key(c, v) == term
}

// beyond reports whether a value is on the right side of a bound.
func beyond(f query.Field, v model.Value, b query.Bound, side int) bool {
	c := model.ClassOf(f.Type)
	bound := model.Value{At: b.Time}
	if c == model.FractionClass {
		bound, _ = model.Fraction(f, b.Number)
	} else if c != model.DateClass {
		bound, _ = model.Numeral(b.Number)
	}
	n := model.CompareBound(c, v, bound) * side
	return n > 0 || n == 0 && b.Inclusive
}
