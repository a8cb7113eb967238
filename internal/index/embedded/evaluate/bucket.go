package evaluate

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strconv"

	"tutti/internal/base/heap"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/embedded/evaluate/match"
	"tutti/internal/index/embedded/segment/dictionary"
)

// valueRef is a value in one part.
type valueRef struct {
	part    int
	ordinal uint32
}

// bucket is a candidate bucket.
type bucket struct {
	count int64
	// at is the index of its value in key order.
	at   int
	refs []valueRef
}

// before compares buckets in the order of the result.
func (b *bucket) before(c *bucket) int {
	if b.count != c.count {
		return cmp.Compare(c.count, b.count)
	}
	return cmp.Compare(b.at, c.at)
}

// topBuckets selects the first buckets, with a heap whose top is the last of them once there are max.
type topBuckets struct {
	buckets []bucket
	max     int
}

func lastBucket(b, c bucket) bool { return b.before(&c) > 0 }

// offer adds a bucket if it is among the first max. Buckets are offered in key order, so a bucket with the same count as the last one is
// not.
func (b *topBuckets) offer(count int64, at int, refs []valueRef) {
	if len(b.buckets) < b.max {
		b.buckets = append(b.buckets, bucket{count: count, at: at, refs: slices.Clone(refs)})
		if len(b.buckets) == b.max {
			heap.Init(b.buckets, lastBucket)
		}
		return
	}
	if worst := &b.buckets[0]; count > worst.count {
		worst.count, worst.at, worst.refs = count, at, append(worst.refs[:0], refs...)
		heap.Fix(b.buckets, lastBucket)
	}
}

// full reports whether no bucket with a count up to most would be added.
func (b *topBuckets) full(most int64) bool {
	return len(b.buckets) == b.max && b.buckets[0].count >= most
}

// valueMerger merges the values of several parts in key order.
type valueMerger struct {
	field query.Field
	// numeric is set if keys are numbers. multipleParts is set if several parts have values; a single part is read without keys.
	numeric, multipleParts bool
	heap                   []*valueCursor
	refs                   []valueRef
	// first is the value that next returns, text its bytes.
	first valueKey
	text  []byte
}

// valueKey is the key that values are sorted by: a number, or a text whose first bytes are the number.
type valueKey struct {
	number uint64
	text   []byte
}

func (k *valueKey) compare(other *valueKey) int {
	if k.number != other.number {
		return cmp.Compare(k.number, other.number)
	}
	return bytes.Compare(k.text, other.text)
}

// valueCursor is the position of a valueMerger in one part.
type valueCursor struct {
	valueKey
	part int
	of   *facetPart
	left []valueCount
	// texts reads the texts of the part's column; each is valid until the next.
	texts *dictionary.Reader
}

func lowestKey(a, b *valueCursor) bool { return a.compare(&b.valueKey) < 0 }

func (u *valueMerger) loadKey(c *valueCursor) {
	switch {
	case !u.numeric:
		c.text = c.texts.At(c.left[0].ordinal)
		c.number = dictionary.SortPrefix(c.text)
	case fieldtype.Of(u.field.Type).Group == fieldtype.Nanos:
		c.number = query.SignedKey(query.Millis(c.of.column.Key(c.left[0].ordinal)))
	default:
		c.number = c.of.column.Key(c.left[0].ordinal)
	}
}

func newValueMerger(f query.Field, parts []facetPart) *valueMerger {
	u := &valueMerger{field: f}
	for i := range parts {
		p := &parts[i]
		if len(p.values) == 0 {
			continue
		}
		if len(u.heap) == 0 {
			u.numeric = p.column.Numeric()
		}
		c := &valueCursor{part: i, of: p, left: p.values}
		if !u.numeric {
			c.texts = p.column.Texts()
		}
		u.heap = append(u.heap, c)
	}
	u.multipleParts = len(u.heap) > 1
	if u.multipleParts {
		for _, c := range u.heap {
			u.loadKey(c)
		}
		heap.Init(u.heap, lowestKey)
	}
	return u
}

// next returns the number of documents of the next value, 0 at the end. refs are its occurrences in the parts.
func (u *valueMerger) next() int64 {
	u.refs = u.refs[:0]
	if len(u.heap) == 0 {
		return 0
	}
	// Advancing a cursor overwrites its text.
	u.text = append(u.text[:0], u.heap[0].text...)
	u.first = valueKey{number: u.heap[0].number, text: u.text}
	part := u.heap[0].part
	count := u.take()
	for len(u.heap) > 0 && u.heap[0].part != part && u.heap[0].compare(&u.first) == 0 {
		count += u.take()
	}
	return count
}

// take counts the value on top of the heap and advances its cursor.
func (u *valueMerger) take() int64 {
	c := u.heap[0]
	v := c.left[0]
	u.refs = append(u.refs, valueRef{c.part, v.ordinal})
	c.left = c.left[1:]
	switch {
	case len(c.left) == 0:
		u.heap = heap.Pop(u.heap, lowestKey)
	case u.multipleParts:
		u.loadKey(c)
		heap.Fix(u.heap, lowestKey)
	}
	return int64(v.count)
}

// mergeBuckets returns the buckets and the number of distinct values in r.
func (f *facetTask) mergeBuckets(ctx context.Context, r *index.FacetResult) {
	kept := topBuckets{}
	if f.req.Buckets != nil {
		kept.max = f.req.Buckets.Max
	}
	most := int64(0)
	for i := range f.parts {
		highest := uint32(0)
		for _, v := range f.parts[i].values {
			highest = max(highest, v.count)
		}
		most += int64(highest)
	}
	values, n := newValueMerger(f.req.Field, f.parts), 0
	for count := values.next(); count > 0; count = values.next() {
		if kept.max > 0 {
			kept.offer(count, n, values.refs)
		}
		if n++; n%match.BatchSize == 0 && ctx.Err() != nil {
			return
		}
		if f.req.Cardinality == 0 && kept.max < index.MaxBuckets && kept.full(most) {
			break
		}
	}
	if f.req.Cardinality > 0 {
		r.Cardinality = int64(n)
	}
	slices.SortFunc(kept.buckets, func(a, b bucket) int { return a.before(&b) })
	f.buckets = kept.buckets
	if f.req.Buckets == nil || len(f.buckets) == 0 {
		return
	}
	if kept.max == index.MaxBuckets {
		r.Omitted = int64(n - len(f.buckets))
	}
	r.Buckets = make([]index.Bucket, len(f.buckets))
	for i := range f.buckets {
		b := &f.buckets[i]
		r.Buckets[i] = index.Bucket{Key: f.keyOf(b.refs[0]), Count: b.count}
		if len(f.filters) > 0 {
			r.Buckets[i].Filters = f.filteredCounts(b)
		}
	}
}

// keyOf returns the Key of a bucket.
func (f *facetTask) keyOf(r valueRef) string {
	column := f.parts[r.part].column
	switch {
	case !column.Numeric():
		return string(column.Text(r.ordinal))
	case fieldtype.Of(f.req.Field.Type).Group == fieldtype.Nanos:
		return strconv.FormatInt(query.Millis(column.Key(r.ordinal)), 10)
	default:
		return query.Text(f.req.Field, column.Key(r.ordinal))
	}
}

// filteredCounts returns the Filters of a bucket.
func (f *facetTask) filteredCounts(b *bucket) []int64 {
	counts := make([]int64, len(f.filters))
	for _, r := range b.refs {
		for i, list := range f.parts[r.part].filtered {
			at, found := slices.BinarySearchFunc(list, r.ordinal, func(c valueCount, ordinal uint32) int {
				return cmp.Compare(c.ordinal, ordinal)
			})
			if found {
				counts[i] += int64(list[at].count)
			}
		}
	}
	return counts
}
