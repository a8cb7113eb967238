package segment_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/go-cmp/cmp"

	"tutti/internal/index/embedded/segment"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/testkit"
)

const mixedMapping = `{"properties":{
	"word":{"type":"keyword"},"id":{"type":"keyword"},"rare":{"type":"keyword"},"whole":{"type":"long"},"broken":{"type":"double"},
	"flag":{"type":"boolean"},"day":{"type":"date"},"text":{"type":"text","fields":{"raw":{"type":"keyword"}}},
	"info":{"type":"flattened"},
	"object":{"properties":{"word":{"type":"keyword"},"deep":{"type":"nested","properties":{"word":{"type":"keyword"}}}}},
	"file":{"type":"nested","properties":{"id":{"type":"keyword"},"size":{"type":"long"},"info":{"type":"flattened"},
		"part":{"type":"nested","properties":{"word":{"type":"keyword"},"size":{"type":"integer"}}}}}}}`

func mixedPaths() []string { return []string{"", "object.deep", "file", "file.part"} }

func mixedFields() []string {
	return []string{
		"_id", "word", "id", "rare", "whole", "broken", "flag", "day", "text", "text.raw", "info", "object.word", "object.deep.word",
		"file.id", "file.size", "file.info", "file.part.word", "file.part.size",
		"info.a", "info.a.b", "info.c", "file.info.a", "file.info.c", "file.info.zz", "nothing",
	}
}

// random generates values of documents.
type random struct{ *rand.Rand }

func (r random) word() string { return string(rune('a' + r.IntN(6))) }

func (r random) uuid() string {
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", r.Uint32(), r.IntN(1<<16), r.IntN(1<<12), r.IntN(1<<12), r.Int64N(1<<48))
}

// maybe returns nil, a value, or an array of values and nulls.
func (r random) maybe(value func() any) any {
	switch r.IntN(8) {
	case 0:
		return nil
	case 1:
		return []any{}
	case 2, 3:
		var all []any
		for range 1 + r.IntN(3) {
			all = append(all, value())
			if r.IntN(8) == 0 {
				all = append(all, nil)
			}
		}
		return all
	default:
		return value()
	}
}

func (r random) info() any {
	return map[string]any{
		"a": map[string]any{"b": r.maybe(func() any { return r.word() })}, "c": r.maybe(func() any { return r.IntN(3) }),
	}
}

func (r random) document() map[string]any {
	word := func() any { return r.word() }
	doc := map[string]any{
		"word": r.word(), "id": r.uuid(), "whole": r.maybe(func() any { return r.IntN(100) - 50 }),
		"broken": r.maybe(func() any { return float64(r.IntN(9)) / 4 }), "flag": r.maybe(func() any { return r.IntN(2) == 0 }),
		"day":  r.maybe(func() any { return fmt.Sprintf("20%02d-01-0%d", r.IntN(30), 1+r.IntN(9)) }),
		"text": r.maybe(func() any { return "A " + r.word() + "-" + r.word() }), "info": r.info(),
		"object": r.maybe(func() any {
			return map[string]any{"word": r.maybe(word), "deep": r.maybe(func() any { return map[string]any{"word": r.maybe(word)} })}
		}),
		"file": r.maybe(func() any {
			return map[string]any{
				"id": r.uuid() + ".v" + r.word(), "size": r.IntN(1000), "info": r.info(),
				"part": r.maybe(func() any {
					return map[string]any{"word": r.maybe(word), "size": r.maybe(func() any { return r.IntN(5) })}
				}),
			}
		}),
	}
	if r.IntN(20) == 0 {
		doc["rare"] = r.word()
	}
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		if r.IntN(12) == 0 {
			delete(doc, name)
		}
	}
	return doc
}

// numbered is a document with its number.
type numbered struct {
	number uint64
	id     string
	body   []byte
}

func (r random) documents(tb testing.TB, n int) []numbered {
	var docs []numbered
	for i := range n {
		body, err := json.Marshal(r.document())
		if err != nil {
			tb.Fatal(err)
		}
		docs = append(docs, numbered{uint64(3*i + r.IntN(3)), r.uuid(), body})
	}
	return docs
}

func builtOf(tb testing.TB, tree *mapping.Field, docs []numbered) *segment.Segment {
	tb.Helper()
	b := segment.NewBuilder(tree)
	for _, d := range docs {
		if err := b.Add(d.number, d.id, d.body); err != nil {
			tb.Fatal(err)
		}
	}
	return b.Segment()
}

// reread writes a segment and reads it back.
func reread(tb testing.TB, s *segment.Segment) *segment.Segment {
	tb.Helper()
	var file bytes.Buffer
	if n, err := s.WriteTo(&file); err != nil || n != int64(file.Len()) {
		tb.Fatalf("wrote %d of %d bytes: %v", n, file.Len(), err)
	}
	read, err := segment.Read(&file, int64(file.Len()))
	if err != nil {
		tb.Fatal(err)
	}
	return read
}

// TestMerge compares merged parts, split in several ways, with a segment built from the remaining documents.
func TestMerge(t *testing.T) {
	tree := parse(t, mixedMapping)
	for name, interleaved := range map[string]bool{"one behind the other": false, "interleaved": true} {
		for seed := range uint64(testkit.Cases(40)) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				r := random{rand.New(rand.NewPCG(seed, 7))}
				docs := r.documents(t, r.IntN(400))
				parts := make([][]numbered, 1+r.IntN(5))
				for i, d := range docs {
					part := i * len(parts) / len(docs)
					if interleaved {
						part = r.IntN(len(parts))
					}
					parts[part] = append(parts[part], d)
				}
				share := r.IntN(3) // the share of deleted documents, in quarters
				var (
					live     []numbered
					segments []*segment.Segment
					dead     []*roaring.Bitmap
				)
				for _, part := range parts {
					removed := roaring.New()
					for i, d := range part {
						if r.IntN(4) < share {
							removed.Add(uint32(i))
						} else {
							live = append(live, d)
						}
					}
					segments, dead = append(segments, builtOf(t, tree, part)), append(dead, removed)
				}
				slices.SortFunc(live, func(a, b numbered) int { return int(a.number) - int(b.number) })
				if share == 0 {
					dead = nil
				}
				slices.Reverse(segments) // the order of the parts does not matter
				slices.Reverse(dead)
				want := describe(t, builtOf(t, tree, live), mixedPaths(), mixedFields())
				got := segment.Merge(segments, dead)
				if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(describe(t, got, mixedPaths(), mixedFields()), "\n")); diff != "" {
					t.Fatal(diff)
				}
				for name, again := range map[string]*segment.Segment{
					"merged again": segment.Merge([]*segment.Segment{got}, nil), "read": reread(t, got), "read and merged": segment.Merge([]*segment.Segment{reread(t, got)}, nil),
				} {
					if diff := cmp.Diff(want, describe(t, again, mixedPaths(), mixedFields())); diff != "" {
						t.Fatal(name, diff)
					}
				}
			})
		}
	}
}

// TestMergeTypes merges parts in which a field has different types: the type of the newest part is used.
func TestMergeTypes(t *testing.T) {
	tests := map[string]struct {
		older, newer, want string
	}{
		"long, keyword":         {"long", "keyword", "1,3 2,x"},
		"keyword, long":         {"keyword", "long", "1,3 2"},
		"long, double":          {"long", "double", "1,3,3 2"},
		"long, integer":         {"long", "integer", "1,3,3 2"},
		"keyword, wildcard":     {"keyword", "wildcard", "1,3 2,x"},
		"keyword, keyword":      {"keyword", "keyword", "1,3 2,x"},
		"keyword, boolean":      {"keyword", "boolean", "1,3 -"}, // the newer type has no value
		"keyword, nested":       {"keyword", "nested", "1,3 -"},
		"keyword, scaled_float": {"keyword", "scaled_float", "1,3 2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tree := func(kind string) *mapping.Field {
				return parse(t, `{"properties":{"f":{"type":"`+kind+`","scaling_factor":10}}}`)
			}
			older := builtOf(t, tree(test.older), []numbered{{1, "a", []byte(`{"f":[3,1,3]}`)}})
			newer := builtOf(t, tree(test.newer), []numbered{{2, "b", []byte(`{"f":["2","x"]}`)}})
			if got := numbersOf(t, segment.Merge([]*segment.Segment{newer, older}, nil), tree(test.newer), "f"); got != test.want {
				t.Errorf("the values are %q, want %q", got, test.want)
			}
		})
	}
}

// TestMergeNothing merges deleted documents only.
func TestMergeNothing(t *testing.T) {
	s := build(t, parse(t, mixedMapping), `{"word":"a","file":{"id":"x"},"info":{"a":"b"}}`)
	merged := segment.Merge([]*segment.Segment{s}, []*roaring.Bitmap{roaring.BitmapOf(0)})
	got := describe(t, merged, mixedPaths(), mixedFields())
	if want := describe(t, segment.NewBuilder(mapping.Song()).Segment(), mixedPaths(), mixedFields()); got != want {
		t.Error(cmp.Diff(want, got))
	}
}
