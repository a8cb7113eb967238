package match

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/filter/query"
	"tutti/internal/index/embedded/segment"
)

// View evaluates the clauses of one search on one part. Each clause is evaluated once; concurrent users wait for its result. A
// clause waits only for its children, so there is no deadlock.
type View struct {
	Segment *segment.Segment
	deleted *roaring.Bitmap
	// rows are by clause, deleted documents included; live are the documents of a clause without deleted ones.
	rows []memo[*roaring.Bitmap]
	live []memo[Documents]
}

type memo[T any] struct {
	once  sync.Once
	value T
}

// Documents is a set of documents that are not deleted.
type Documents struct {
	Bits  *roaring.Bitmap
	Count int
	// All is set when it holds all documents of a segment without deletions.
	All bool
}

// Intersect returns the documents that are in set too.
func (d Documents) Intersect(set *roaring.Bitmap) Documents {
	bits := roaring.And(d.Bits, set)
	count := int(bits.GetCardinality())
	return Documents{Bits: bits, Count: count, All: d.All && count == d.Count}
}

// NewView returns the View of a plan whose clauses are complete on a segment, of which the documents in deleted count as removed; nil for none.
func NewView(s *segment.Segment, deleted *roaring.Bitmap, p *Plan) *View {
	return &View{
		Segment: s, deleted: deleted,
		rows: make([]memo[*roaring.Bitmap], len(p.clauses)), live: make([]memo[Documents], len(p.clauses)),
	}
}

// LiveDocuments returns the documents for which a clause of the scope "" holds.
func (v *View) LiveDocuments(ctx context.Context, c *Clause, s *Scratch) Documents {
	m := &v.live[c.at]
	m.once.Do(func() {
		bits := v.MatchRows(ctx, c, s)
		if v.deleted != nil && !v.deleted.IsEmpty() {
			bits = roaring.AndNot(bits, v.deleted)
		}
		count := int(bits.GetCardinality())
		m.value = Documents{Bits: bits, Count: count, All: count == v.Segment.Documents()}
	})
	return m.value
}

// MatchRows returns the rows of a clause's scope for which it holds, deleted documents and their elements included. The set must
// not be changed. It is incomplete when ctx has ended.
func (v *View) MatchRows(ctx context.Context, c *Clause, s *Scratch) *roaring.Bitmap {
	m := &v.rows[c.at]
	m.once.Do(func() { m.value = v.evaluate(ctx, c, s) })
	return m.value
}

func (v *View) evaluate(ctx context.Context, c *Clause, s *Scratch) *roaring.Bitmap {
	if ctx.Err() != nil {
		return roaring.New()
	}
	switch c.op {
	case query.Everything:
		return v.allRows(c.scope)
	case query.And:
		return v.and(ctx, c.children, s)
	case query.Or:
		sets := make([]*roaring.Bitmap, 0, len(c.children))
		for _, child := range c.children {
			sets = append(sets, v.MatchRows(ctx, child, s))
		}
		return roaring.FastOr(sets...)
	case query.Not:
		return roaring.AndNot(v.allRows(c.scope), v.MatchRows(ctx, c.children[0], s))
	case query.Some:
		return v.lift(c.path, c.scope, v.MatchRows(ctx, c.children[0], s), s)
	case query.Terms, query.Range, query.Patterns, query.Exists:
		return v.matchField(ctx, c, s)
	case query.Nothing:
	}
	return roaring.New()
}

// allRows returns all rows of a path.
func (v *View) allRows(path string) *roaring.Bitmap {
	bits := roaring.New()
	bits.AddRange(0, uint64(v.RowCount(path)))
	return bits
}

// RowCount returns the number of rows of a path.
func (v *View) RowCount(path string) int {
	if path == "" {
		return v.Segment.Documents()
	}
	return v.Segment.Rows(path)
}

// and returns the rows for which all children hold. It evaluates the cheapest first, and subtracts negated children instead of
// inverting them.
func (v *View) and(ctx context.Context, children []*Clause, s *Scratch) *roaring.Bitmap {
	var wanted, unwanted []*roaring.Bitmap
	for _, child := range children {
		if child.op == query.Not {
			unwanted = append(unwanted, v.MatchRows(ctx, child.children[0], s))
			continue
		}
		set := v.MatchRows(ctx, child, s)
		if set.IsEmpty() {
			return set
		}
		wanted = append(wanted, set)
	}
	if len(wanted) == 0 {
		wanted = append(wanted, v.allRows(children[0].scope))
	}
	slices.SortFunc(wanted, func(a, b *roaring.Bitmap) int { return int(a.GetCardinality()) - int(b.GetCardinality()) })
	all, owned := wanted[0], false
	for _, set := range wanted[1:] {
		if owned {
			all.And(set)
		} else {
			all, owned = roaring.And(all, set), true
		}
	}
	for _, set := range unwanted {
		if owned {
			all.AndNot(set)
		} else {
			all, owned = roaring.AndNot(all, set), true
		}
	}
	return all
}

// parentPath returns the path of the parent rows of a nested path: the nearest enclosing nested path, or "".
func (v *View) parentPath(path string) string {
	for {
		dot := strings.LastIndexByte(path, '.')
		if dot < 0 {
			return ""
		}
		path = path[:dot]
		if v.Segment.Rows(path) > 0 {
			return path
		}
	}
}
