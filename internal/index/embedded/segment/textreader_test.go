package segment_test

import (
	"fmt"
	"strings"
	"testing"

	"tutti/internal/index/embedded/segment"
)

// packedColumns returns a segment whose columns "id" and "info.a" have so many texts that they are packed.
func packedColumns(tb testing.TB, documents int) *segment.Segment {
	tb.Helper()
	tree := parse(tb, `{"properties":{"id":{"type":"keyword"},"info":{"type":"flattened"}}}`)
	var parts []*segment.Segment
	for from := 0; from < documents; from += 1000 {
		b := segment.NewBuilder(tree)
		for i := from; i < min(from+1000, documents); i++ {
			doc := fmt.Sprintf(`{"id":"EGAF%08x-%d.bam","info":{"a":"v%05d%s","b":"w%d"}}`, uint32(i)*2654435761, i%7, i, strings.Repeat("x", i%40), i%5000)
			if err := b.Add(uint64(i), fmt.Sprint("d", i), []byte(doc)); err != nil {
				tb.Fatal(err)
			}
		}
		parts = append(parts, b.Segment())
	}
	return segment.Merge(parts, nil)
}

// TestTextReader reads columns in several orders, and compares with Column.Text.
func TestTextReader(t *testing.T) {
	s := packedColumns(t, segment.MaxPlain+500)
	few := build(t, parse(t, `{"properties":{"id":{"type":"keyword"},"info":{"type":"flattened"}}}`),
		`{"id":"b","info":{"a":"y"}}`, `{"id":["","a"],"info":{"a":["x","z"],"ab":"q"}}`)
	for name, c := range map[string]*segment.Column{
		"packed": s.Column("id"), "packed, of a key": s.Column("info.b"), "packed, of all keys": s.Column("info"), "ids": s.Column("_id"),
		"plain": few.Column("id"), "plain, of a key": few.Column("info.a"),
	} {
		size := c.Size()
		for order, next := range map[string]func(o uint32) uint32{
			"each":       func(o uint32) uint32 { return o + 1 },
			"some":       func(o uint32) uint32 { return o + 1 + o%5 },
			"few":        func(o uint32) uint32 { return o + 13 + o%29 },
			"heads":      func(o uint32) uint32 { return o + 16 },
			"tails":      func(o uint32) uint32 { return (o + 16) | 15 },
			"back again": func(o uint32) uint32 { return o + []uint32{17, 31, 0, 16}[o%4] - 10 }, // every fourth steps back
		} {
			t.Run(name+"/"+order, func(t *testing.T) {
				r, reads := c.Texts(), 0
				for o := uint32(0); o < size && reads < 2*int(size); o = next(o) {
					if got, want := string(r.At(o)), string(c.Text(o)); got != want {
						t.Fatalf("text %d is %q, want %q", o, got, want)
					}
					if o%11 == 0 && string(r.At(o)) != string(c.Text(o)) {
						t.Fatalf("text %d is another when it is read twice", o)
					}
					reads++
				}
			})
		}
	}
}

// TestTextReaderKeepsNothing reads texts in order without an allocation per text.
func TestTextReaderKeepsNothing(t *testing.T) {
	c := packedColumns(t, segment.MaxPlain+500).Column("id")
	texts := 0
	got := testing.AllocsPerRun(3, func() {
		r := c.Texts()
		for o := range c.Size() {
			texts += min(1, len(r.At(o)))
		}
	})
	if got > 20 || texts == 0 {
		t.Errorf("reading %d texts takes %v allocations", c.Size(), got)
	}
}

// BenchmarkTexts measures reading one text of a packed column, in order.
func BenchmarkTexts(b *testing.B) {
	c := compact(batches(b, 20)).Column("files.objectId")
	for name, read := range map[string]func() func(uint32) []byte{
		"each alone": func() func(uint32) []byte { return c.Text }, "in order": func() func(uint32) []byte { return c.Texts().At },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			at, left := read(), uint32(0)
			for b.Loop() {
				if left == c.Size() {
					at, left = read(), 0
				}
				at(left)
				left++
			}
		})
	}
}
