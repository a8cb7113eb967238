package dictionary_test

import (
	"testing"

	"tutti/internal/index/embedded/segment/dictionary"
)

// TestReader reads texts in several orders, and compares with Texts.At.
func TestReader(t *testing.T) {
	many := ids(dictionary.MaxPlain + 500)
	for name, texts := range map[string]dictionary.Texts{
		"packed": built(len(many), many...), "plain": built(0, "", "a", "b", "c"), "one block and a part": built(dictionary.MaxPlain+1, many[:23]...),
	} {
		size := uint32(texts.Size())
		for order, next := range map[string]func(o uint32) uint32{
			"each":       func(o uint32) uint32 { return o + 1 },
			"some":       func(o uint32) uint32 { return o + 1 + o%5 },
			"few":        func(o uint32) uint32 { return o + 13 + o%29 },
			"heads":      func(o uint32) uint32 { return o + 16 },
			"tails":      func(o uint32) uint32 { return (o + 16) | 15 },
			"back again": func(o uint32) uint32 { return o + []uint32{17, 31, 0, 16}[o%4] - 10 }, // every fourth steps back
		} {
			t.Run(name+"/"+order, func(t *testing.T) {
				r, reads := dictionary.NewReader(texts), 0
				for o := uint32(0); o < size && reads < 2*int(size); o = next(o) {
					if got, want := string(r.At(o)), string(texts.At(nil, o)); got != want {
						t.Fatalf("text %d is %q, want %q", o, got, want)
					}
					if o%11 == 0 && string(r.At(o)) != string(texts.At(nil, o)) {
						t.Fatalf("text %d is another when it is read twice", o)
					}
					reads++
				}
			})
		}
	}
}

// TestReaderKeepsNothing reads texts in order without an allocation per text.
func TestReaderKeepsNothing(t *testing.T) {
	many := ids(dictionary.MaxPlain + 500)
	of, texts := built(len(many), many...), 0
	got := testing.AllocsPerRun(3, func() {
		r := dictionary.NewReader(of)
		for o := range many {
			texts += min(1, len(r.At(uint32(o))))
		}
	})
	if got > 20 || texts == 0 {
		t.Errorf("reading %d texts takes %v allocations", len(many), got)
	}
}
