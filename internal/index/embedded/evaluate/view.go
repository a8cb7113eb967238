package evaluate

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/filter/query"
	"tutti/internal/index/embedded/segment"
)

// view evaluates the clauses of one search on one part. Each clause is evaluated once; concurrent users wait for its result. A
// clause waits only for its children, so there is no deadlock.
type view struct {
	segment *segment.Segment
	deleted *roaring.Bitmap
	// rows are by clause, deleted documents included; live are the documents of a clause without deleted ones.
	rows []memo[*roaring.Bitmap]
	live []memo[documents]
}

type memo[T any] struct {
	once  sync.Once
	value T
}

// documents is a set of documents that are not deleted.
type documents struct {
	bits  *roaring.Bitmap
	count int
	// all is set when it holds all documents of a segment without deletions.
	all bool
}

func newViews(parts []Part, p *plan) []*view {
	views := make([]*view, len(parts))
	for i, part := range parts {
		views[i] = &view{
			segment: part.Segment, deleted: part.Deleted,
			rows: make([]memo[*roaring.Bitmap], len(p.clauses)), live: make([]memo[documents], len(p.clauses)),
		}
	}
	return views
}

// liveDocuments returns the documents for which a clause of the scope "" holds.
func (v *view) liveDocuments(ctx context.Context, c *clause, s *scratch) documents {
	m := &v.live[c.at]
	m.once.Do(func() {
		bits := v.matchRows(ctx, c, s)
		if v.deleted != nil && !v.deleted.IsEmpty() {
			bits = roaring.AndNot(bits, v.deleted)
		}
		count := int(bits.GetCardinality())
		m.value = documents{bits: bits, count: count, all: count == v.segment.Documents()}
	})
	return m.value
}

// matchRows returns the rows of a clause's scope for which it holds, deleted documents and their elements included. The set must
// not be changed. It is incomplete when ctx has ended.
func (v *view) matchRows(ctx context.Context, c *clause, s *scratch) *roaring.Bitmap {
	m := &v.rows[c.at]
	m.once.Do(func() { m.value = v.evaluate(ctx, c, s) })
	return m.value
}

func (v *view) evaluate(ctx context.Context, c *clause, s *scratch) *roaring.Bitmap {
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
			sets = append(sets, v.matchRows(ctx, child, s))
		}
		return roaring.FastOr(sets...)
	case query.Not:
		return roaring.AndNot(v.allRows(c.scope), v.matchRows(ctx, c.children[0], s))
	case query.Some:
		return v.lift(c.path, c.scope, v.matchRows(ctx, c.children[0], s), s)
	case query.Terms, query.Range, query.Patterns, query.Exists:
		return v.matchField(ctx, c, s)
	case query.Nothing:
	}
	return roaring.New()
}

// allRows returns all rows of a path.
func (v *view) allRows(path string) *roaring.Bitmap {
	bits := roaring.New()
	bits.AddRange(0, uint64(v.rowCount(path)))
	return bits
}

// rowCount returns the number of rows of a path.
func (v *view) rowCount(path string) int {
	if path == "" {
		return v.segment.Documents()
	}
	return v.segment.Rows(path)
}

// countable returns the column of a field for facets and orders, nil if its values have neither.
func (v *view) countable(f query.Field) *segment.Column {
	if f.Path != fieldID && !query.Countable(f.Type) {
		return nil
	}
	return v.segment.Column(f.Path)
}

// span returns the row range of each document in a path, nil for "".
func (v *view) span(path string) []uint32 {
	if path == "" {
		return nil
	}
	return v.segment.Span(path)
}

// and returns the rows for which all children hold. It evaluates the cheapest first, and subtracts negated children instead of
// inverting them.
func (v *view) and(ctx context.Context, children []*clause, s *scratch) *roaring.Bitmap {
	var wanted, unwanted []*roaring.Bitmap
	for _, child := range children {
		if child.op == query.Not {
			unwanted = append(unwanted, v.matchRows(ctx, child.children[0], s))
			continue
		}
		set := v.matchRows(ctx, child, s)
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
func (v *view) parentPath(path string) string {
	for {
		dot := strings.LastIndexByte(path, '.')
		if dot < 0 {
			return ""
		}
		path = path[:dot]
		if v.segment.Rows(path) > 0 {
			return path
		}
	}
}
