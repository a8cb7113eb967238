package upstream

import (
	"encoding/binary"
	"math/bits"

	"tutti/internal/base/jsontext"
)

// form is what a parser notes of a record beside its values.
type form struct {
	// long is set if the record has a number of core.LongNumber bytes or more.
	long bool
	// shape is a hash of the names of the members, as they are written, and the JSON kinds of the values, in their order; texts
	// that are days, as jsontext.IsDay has it, are a kind of their own.
	shape uint64
}

// mix is an odd number with as many ones as zeros, as multipliers of hashes have.
const mix = 0x9e3779b97f4a7c15

// value adds the kind of the value that begins with c, or the end of an array or object.
func (f *form) value(c byte) {
	if f == nil {
		return
	}
	switch {
	case c-'0' <= 9:
		c = '-'
	case c == 'f':
		c = 't'
	}
	f.shape = (f.shape ^ uint64(c)) * mix
}

// scanText parses the string at i and adds it.
func (f *form) scanText(buf []byte, i int) int {
	end, _ := scanString(buf, i)
	if end > 0 && f != nil {
		f.text(buf[i+1 : end-1])
	}
	return end
}

// text adds a text, as it is written.
func (f *form) text(raw []byte) {
	c := byte('"')
	if jsontext.IsDay(raw) {
		c = 'd'
	}
	f.value(c)
}

// name adds the name of a member.
func (f *form) name(name []byte) {
	if f == nil {
		return
	}
	n := len(name)
	h := f.shape ^ uint64(n)<<32
	for i := 0; i+8 < n; i += 8 {
		h = folded(h ^ binary.LittleEndian.Uint64(name[i:]))
	}
	switch { // the last bytes may be among those before
	case n >= 8:
		h ^= binary.LittleEndian.Uint64(name[n-8:])
	case n >= 4:
		h ^= uint64(binary.LittleEndian.Uint32(name)) | uint64(binary.LittleEndian.Uint32(name[n-4:]))<<32
	case n > 0:
		h ^= uint64(name[0]) | uint64(name[n/2])<<8 | uint64(name[n-1])<<16
	}
	f.shape = folded(h)
}

// folded returns both halves of a product, so that every bit of x decides on all of the result.
func folded(x uint64) uint64 {
	high, low := bits.Mul64(x, mix)
	return high ^ low
}
