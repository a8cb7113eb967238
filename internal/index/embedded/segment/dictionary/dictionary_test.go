package dictionary_test

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"

	"tutti/internal/index/embedded/segment/dictionary"
	"tutti/internal/index/embedded/segment/sectionfile"
)

// built returns texts, which must be ascending, built for n texts.
func built(n int, texts ...string) dictionary.Texts {
	b := dictionary.NewBuilder(n, nil)
	for _, text := range texts {
		b.Add([]byte(text), nil)
	}
	return b.Done()
}

// ids returns n ascending texts that a packed form shortens: each begins with digits, and some have common prefixes and long ends.
func ids(n int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf("EGAF%08x%s-%d.bam", 7*i, strings.Repeat("y", i%40), i%3)
	}
	return texts
}

// TestFind finds each text of both forms, and what is before and behind it.
func TestFind(t *testing.T) {
	many := ids(dictionary.MaxPlain + 37)
	tests := map[string]struct {
		texts  []string
		packed bool
	}{"none": {}, "one": {texts: []string{""}}, "plain": {texts: []string{"", "a", "ab", "b\x00"}}, "packed": {texts: many, packed: true}}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			texts := built(len(test.texts), test.texts...)
			if texts.Size() != len(test.texts) || texts.Packed() != test.packed {
				t.Fatalf("there are %d texts, packed: %t", texts.Size(), texts.Packed())
			}
			for i, text := range test.texts {
				if got := string(texts.At(nil, uint32(i))); got != text {
					t.Fatalf("text %d is %q, want %q", i, got, text)
				}
				if at, equal := texts.Find(text); at != uint32(i) || !equal {
					t.Fatalf("%q is found at %d (%t), want %d", text, at, equal, i)
				}
				if at, equal := texts.Find(text + "\x00\x00"); at <= uint32(i) || equal {
					t.Fatalf("what is behind %q is found at %d (%t)", text, at, equal)
				}
			}
			if at, equal := texts.Find("\xff"); at != uint32(len(test.texts)) || equal {
				t.Errorf("what is behind all is found at %d (%t)", at, equal)
			}
		})
	}
}

// TestBuilderFew keeps texts plain that are few in the end, although many were expected.
func TestBuilderFew(t *testing.T) {
	want := ids(dictionary.MaxPlain)
	texts := built(dictionary.MaxPlain+1, want...)
	if texts.Packed() || texts.Size() != len(want) {
		t.Fatalf("%d texts are packed: %t", texts.Size(), texts.Packed())
	}
	for i, text := range want {
		if got := string(texts.At(nil, uint32(i))); got != text {
			t.Fatalf("text %d is %q, want %q", i, got, text)
		}
	}
}

// TestInterner numbers texts in the order in which they come, and sorts them.
func TestInterner(t *testing.T) {
	var in dictionary.Interner
	seed := maphash.MakeSeed()
	numbers := map[string]uint32{}
	for i := range 3000 {
		text := fmt.Sprintf("%d-same-head-%d", 7919*i%100, 7919*i%997)
		number, fresh := in.Intern(seed, []byte(text))
		before, known := numbers[text]
		if fresh == known || known && number != before || !known && number != uint32(len(numbers)) {
			t.Fatalf("%q has number %d (fresh: %t), before %d (known: %t), of %d", text, number, fresh, before, known, len(numbers))
		}
		numbers[text] = number
	}
	texts, ordinals := in.Sorted()
	if texts.Size() != len(numbers) || len(ordinals) != len(numbers) {
		t.Fatalf("there are %d texts and %d ordinals of %d", texts.Size(), len(ordinals), len(numbers))
	}
	for text, number := range numbers {
		if got := string(texts.At(nil, ordinals[number])); got != text {
			t.Fatalf("%q is sorted to %q", text, got)
		}
	}
	for i := 1; i < texts.Size(); i++ {
		if bytes.Compare(texts.At(nil, uint32(i-1)), texts.At(nil, uint32(i))) >= 0 {
			t.Fatalf("text %d is not in order", i)
		}
	}
}

func TestSortPrefix(t *testing.T) {
	texts := []string{"", "\x00\x01", "a", "a\x01", "abcdefgh", "abcdefgi", "b", "\xff"}
	for i := 1; i < len(texts); i++ {
		if a, b := dictionary.SortPrefix([]byte(texts[i-1])), dictionary.SortPrefix([]byte(texts[i])); a >= b {
			t.Errorf("%q has %x, %q has %x", texts[i-1], a, texts[i], b)
		}
	}
	if a, b := dictionary.SortPrefix([]byte("abcdefgh")), dictionary.SortPrefix([]byte("abcdefghi")); a != b {
		t.Errorf("the ninth byte counts: %x and %x", a, b)
	}
}

// TestVisit writes texts into a file, at once and piece by piece while they are built, and reads them.
func TestVisit(t *testing.T) {
	for name, want := range map[string][]string{"plain": {"a", "b"}, "packed": ids(20_000)} {
		t.Run(name, func(t *testing.T) {
			var pieces, whole sectionfile.Memory
			dir := sectionfile.Directory{Sections: make([]sectionfile.Section, 9)}
			for i := range dir.Sections {
				dir.Sections[i].Length = 1 << 62
			}
			for out, streamed := range map[*sectionfile.Memory]bool{&pieces: true, &whole: false} {
				f := sectionfile.New(out, dir)
				to := f
				if !streamed {
					to = nil
				}
				b := dictionary.NewBuilder(len(want), to)
				for _, text := range want {
					b.Add([]byte(text), nil)
				}
				if b.Count() != len(want) {
					t.Fatalf("the builder has %d texts, want %d", b.Count(), len(want))
				}
				b.Done().Visit(f)
				if err := f.Finish(sectionfile.Directory{}); err != nil {
					t.Fatal(err)
				}
			}
			read := func(m *sectionfile.Memory) []byte {
				file := make([]byte, m.Size())
				if _, err := m.ReadAt(file, 0); err != nil {
					t.Fatal(err)
				}
				return file
			}
			file := read(&pieces)
			if !bytes.Equal(file, read(&whole)) {
				t.Error("texts that are written in pieces make another file")
			}
			r, _, err := sectionfile.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			texts := dictionary.New(len(want), len(want) > dictionary.MaxPlain)
			texts.Visit(r)
			if err := r.Done(); err != nil || !texts.Consistent() {
				t.Fatalf("reading returns %v, consistent: %t", err, texts.Consistent())
			}
			var got []string
			all := dictionary.NewReader(texts)
			for text, _, ok := all.Next(); ok; text, _, ok = all.Next() {
				if got = append(got, string(text)); int(all.Ordinal()) != len(got)-1 {
					t.Fatalf("text %d has ordinal %d", len(got)-1, all.Ordinal())
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d texts are read, want %d", len(got), len(want))
			}
			if dictionary.New(len(want)+dictionary.MaxPlain, true).Consistent() {
				t.Error("packed texts without blocks are consistent")
			}
		})
	}
}

// TestPackedAgain builds texts from the packed form of others, as a merge does.
func TestPackedAgain(t *testing.T) {
	want := ids(dictionary.MaxPlain + 100)
	from := dictionary.NewReader(built(len(want), want...))
	b := dictionary.NewBuilder(len(want), nil)
	for text, packed, ok := from.Next(); ok; text, packed, ok = from.Next() {
		if packed == nil {
			t.Fatal("a packed text has no packed form")
		}
		b.Add(text, packed)
	}
	texts := b.Done()
	for i, text := range want {
		if got := string(texts.At(nil, uint32(i))); got != text {
			t.Fatalf("text %d is %q, want %q", i, got, text)
		}
	}
}
