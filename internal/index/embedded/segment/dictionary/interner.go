package dictionary

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"math"
	"slices"
)

// Interner numbers distinct texts in the order in which they are first added.
type Interner struct {
	data   []byte
	starts []uint64
	// table is an open-addressing hash table. An entry has the upper half of a text's hash and, below, the text's number plus one;
	// 0 is free.
	table []uint64
}

func (t *Interner) size() int { return max(0, len(t.starts)-1) }

func (t *Interner) at(number uint32) []byte { return t.data[t.starts[number]:t.starts[number+1]] }

// Intern returns the number of a text, and whether the text is new.
func (t *Interner) Intern(seed maphash.Seed, text []byte) (number uint32, fresh bool) {
	if 4*t.size() >= 3*len(t.table) {
		t.grow()
	}
	const upper = 0xffffffff << 32
	hash := maphash.Bytes(seed, text)
	mask := uint64(len(t.table) - 1)
	i := hash >> 32 & mask
	for ; t.table[i] != 0; i = (i + 1) & mask {
		if t.table[i]&upper == hash&upper && string(t.at(uint32(t.table[i])-1)) == string(text) {
			return uint32(t.table[i]) - 1, false
		}
	}
	number = uint32(t.size())
	t.data = append(t.data, text...)
	t.starts = append(t.starts, uint64(len(t.data)))
	t.table[i] = hash&upper | uint64(number+1)
	return number, true
}

func (t *Interner) grow() {
	if t.table == nil {
		t.table, t.starts = make([]uint64, 16), append(t.starts, 0)
		return
	}
	table := make([]uint64, 4*len(t.table))
	mask := uint64(len(table) - 1)
	for _, entry := range t.table {
		if entry == 0 {
			continue
		}
		i := entry >> 32 & mask
		for table[i] != 0 {
			i = (i + 1) & mask
		}
		table[i] = entry
	}
	t.table = table
}

// Sorted returns the texts in byte order, and the ordinal of each number.
func (t *Interner) Sorted() (texts Texts, ordinals []uint32) {
	type entry struct {
		head   uint64
		number uint32
	}
	entries := make([]entry, t.size())
	for i := range entries {
		entries[i] = entry{SortPrefix(t.at(uint32(i))), uint32(i)}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		if c := cmp.Compare(a.head, b.head); c != 0 {
			return c
		}
		return bytes.Compare(t.at(a.number), t.at(b.number))
	})
	ordinals = make([]uint32, len(entries))
	for i, e := range entries {
		ordinals[e.number] = uint32(i)
	}
	if uint64(len(t.data)) > math.MaxUint32 {
		var p packedBuilder
		for _, e := range entries {
			p.Add(t.at(e.number), nil)
		}
		return p.Done(), ordinals
	}
	plain := &plainTexts{data: make([]byte, 0, len(t.data)), starts: make([]uint32, 1, len(entries)+1)}
	for _, e := range entries {
		plain.data = append(plain.data, t.at(e.number)...)
		plain.starts = append(plain.starts, uint32(len(plain.data)))
	}
	return plain, ordinals
}

// SortPrefix returns the first eight bytes of a text as a number with the same order.
func SortPrefix(text []byte) uint64 {
	if len(text) >= 8 {
		return binary.BigEndian.Uint64(text)
	}
	var room [8]byte
	copy(room[:], text)
	return binary.BigEndian.Uint64(room[:])
}
