package segment_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/index/embedded/segment"
	"tutti/internal/index/mapping"
)

// parse parses a mapping.
func parse(tb testing.TB, text string) *mapping.Field {
	tb.Helper()
	tree, err := mapping.Parse([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return tree
}

// build returns a segment of documents whose ids are d0, d1 and so on.
func build(tb testing.TB, tree *mapping.Field, docs ...string) *segment.Segment {
	tb.Helper()
	b := segment.NewBuilder(tree)
	for i, doc := range docs {
		if err := b.Add(uint64(10*i), fmt.Sprintf("d%d", i), []byte(doc)); err != nil {
			tb.Fatalf("document %d: %v", i, err)
		}
	}
	return b.Segment()
}

// values returns the values of a column by row, numbers as keys; a row without values is "-".
func values(s *segment.Segment, path string) string {
	return render(s, path, func(key uint64) string { return fmt.Sprint(key) })
}

func render(s *segment.Segment, path string, number func(key uint64) string) string {
	c := s.Column(path)
	if c == nil {
		return "none"
	}
	var rows []string
	each := func(ordinals ...uint32) {
		texts := []string{}
		for _, o := range ordinals {
			if c.Numeric() {
				texts = append(texts, number(c.Key(o)))
			} else {
				texts = append(texts, string(c.Text(o)))
			}
		}
		if len(texts) == 0 {
			texts = []string{"-"}
		}
		rows = append(rows, strings.Join(texts, ","))
	}
	for _, o := range c.Single() {
		if o == 0 {
			each()
		} else {
			each(o - 1)
		}
	}
	offsets, ordinals := c.Multi()
	for row := range max(0, len(offsets)-1) {
		each(ordinals[offsets[row]:offsets[row+1]]...)
	}
	return strings.Join(rows, " ")
}

// describe returns everything that can be read from a segment, and checks that the ways of reading it agree.
func describe(tb testing.TB, s *segment.Segment, paths, fields []string) string {
	tb.Helper()
	var out strings.Builder
	fmt.Fprintln(&out, s.Documents(), s.Numbers())
	for d := range s.Documents() {
		fmt.Fprint(&out, s.ID(uint32(d)), " ")
	}
	fmt.Fprintln(&out)
	for _, path := range paths {
		fmt.Fprintln(&out, path, s.Rows(path), s.Span(path), s.Parents(path))
	}
	for _, field := range fields {
		c := s.Column(field)
		if c == nil {
			fmt.Fprintln(&out, field, "none")
			continue
		}
		fmt.Fprintln(&out, field, c.Numeric(), c.Single() != nil, c.Size(), values(s, field), c.Exists())
		checkConsistent(tb, field, c)
	}
	return out.String()
}

// checkConsistent compares the rows of each value with the values of each row.
func checkConsistent(tb testing.TB, field string, c *segment.Column) {
	tb.Helper()
	byValue := make([][]uint32, c.Size())
	for row, o := range c.Single() {
		if o > 0 {
			byValue[o-1] = append(byValue[o-1], uint32(row))
		}
	}
	offsets, values := c.Multi()
	for row := range max(0, len(offsets)-1) {
		group := values[offsets[row]:offsets[row+1]]
		if !slices.IsSorted(group) {
			tb.Fatalf("%s: row %d is not in order: %v", field, row, group)
		}
		for _, o := range slices.Compact(slices.Clone(group)) {
			byValue[o] = append(byValue[o], uint32(row))
		}
	}
	all := roaring.New()
	for o, rows := range byValue {
		ordinal := uint32(o)
		want := roaring.BitmapOf(rows...)
		got := roaring.New()
		if c.AddRows(got, ordinal, ordinal+1); !got.Equals(want) {
			tb.Fatalf("%s: value %d is in rows %v, want %v", field, o, got, want)
		}
		if p := c.Postings(ordinal); p != nil && !p.Equals(want) {
			tb.Fatalf("%s: the bitmap of value %d is %v, want %v", field, o, p, want)
		}
		if len(rows) == 0 {
			tb.Fatalf("%s: value %d is in no row", field, o)
		}
		all.Or(want)
		checkFind(tb, field, c, ordinal)
	}
	if !all.Equals(c.Exists()) {
		tb.Fatalf("%s: exists is %v, want %v", field, c.Exists(), all)
	}
	for _, r := range [][2]uint32{{0, c.Size()}, {1, c.Size()}, {0, c.Size() / 2}, {c.Size() / 3, 2 * c.Size() / 3}, {1, 1}} {
		got, want := roaring.New(), roaring.New()
		c.AddRows(got, r[0], r[1])
		for o := r[0]; o < r[1]; o++ {
			want.AddMany(byValue[o])
		}
		if !got.Equals(want) {
			tb.Fatalf("%s: values %v are in rows %v, want %v", field, r, got, want)
		}
	}
}

// checkFind finds a value, and the position of one right above it that does not exist.
func checkFind(tb testing.TB, field string, c *segment.Column, ordinal uint32) {
	tb.Helper()
	var at, behind uint32
	var equal, also bool
	if c.Numeric() {
		at, equal = c.FindKey(c.Key(ordinal))
		if c.Key(ordinal) == math.MaxUint64 {
			return
		}
		behind, also = c.FindKey(c.Key(ordinal) + 1)
		also = also && (ordinal+1 == c.Size() || c.Key(ordinal+1) != c.Key(ordinal)+1)
	} else {
		text := string(c.Text(ordinal))
		at, equal = c.FindText(text)
		behind, also = c.FindText(text + "\x00")
		also = also && (ordinal+1 == c.Size() || string(c.Text(ordinal+1)) != text+"\x00")
	}
	if at != ordinal || !equal || behind != ordinal+1 || also {
		tb.Fatalf("%s: value %d is found at %d (%v), and what is behind it at %d (%v)", field, ordinal, at, equal, behind, also)
	}
}
