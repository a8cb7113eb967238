package document

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"

	"tutti/internal/core"
)

// maxExact is the highest whole number up to which a double has every whole number.
const maxExact = 1 << 53

// inexactReason is a part of the reason of a whole number that a double may not have.
const inexactReason = "is a whole number beyond 2^53 in a field that nothing declares as integer"

// Inexact reports whether an error of a Checker is about a whole number that its field may change.
func Inexact(err error) bool { return err != nil && strings.Contains(err.Error(), inexactReason) }

// MayBeInexact reports whether a document has a number of as many digits in a row as a whole number that a double may change. Digests and
// UUIDs have such rows too, but not where a number begins.
func MayBeInexact(doc []byte) bool {
	const run, wordBytes, ones = core.LongNumber, 8, uint64(0x0101010101010101)
	for i := 0; i+wordBytes <= len(doc); i += wordBytes { // a run has all bytes of one of these words
		word := binary.LittleEndian.Uint64(doc[i : i+wordBytes])
		if word&(ones*0xF0) != ones*'0' || (word+ones*6)&(ones*0xF0) != ones*'0' {
			continue
		}
		begin, end := i, digits(doc, i)
		for begin > 0 && doc[begin-1]-'0' <= 9 {
			begin--
		}
		if end-begin >= run && (begin == 0 || bytes.IndexByte([]byte(" \t\r\n:,[-"), doc[begin-1]) >= 0) {
			return true
		}
		i += (end - i - 1) / wordBytes * wordBytes
	}
	return false
}

// inexact reports whether text is a whole number, without fraction and exponent, beyond those of which a double has every one.
func inexact(text []byte) bool {
	if len(text) < len("9007199254740992") {
		return false
	}
	n := text
	if n[0] == '-' {
		n = n[1:]
	}
	if digits(n, 0) != len(n) {
		return false
	}
	v, err := strconv.ParseUint(string(n), 10, 64)
	return err != nil || v > maxExact
}
