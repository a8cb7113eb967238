package dictionary

// Marks of a packed text. A byte of the text that equals a mark is written after markByte.
const (
	// markUUID is followed by the 16 bytes of a UUID in its lower-case text form.
	markUUID = 1
	// markHex is followed by a count and that many bytes, each of which encodes two lower-case hexadecimal digits.
	markHex = 2
	// markByte is followed by a literal byte.
	markByte = 3
)

const (
	uuidLength = 36
	// minHex is the number of digits from which a mark and a count save space.
	minHex = 8
	// maxHex is the number of digits that one count can express.
	maxHex = 2 * 255
)

// pack appends text to dst in a shorter form: the ids and checksums that most distinct values of an index are take half the space.
func pack(dst, text []byte) []byte {
	fresh := true // a run of digits starts only at the start of a word
	for i := 0; i < len(text); {
		c := text[i]
		if fresh && hexDigit(c) <= 0xf {
			var n int
			if dst, n = packHex(dst, text[i:]); n > 0 {
				i += n
				fresh = false
				continue
			}
		}
		fresh = !isWordByte(c)
		if c-1 < markByte {
			dst = append(dst, markByte)
		}
		dst = append(dst, c)
		i++
	}
	return dst
}

// packHex appends the UUID or the run of digits at the start of text, and returns its length, 0 for none.
func packHex(dst, text []byte) ([]byte, int) {
	start := len(dst)
	if len(text) >= uuidLength && text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-' {
		dst = append(dst, markUUID)
		for _, group := range [...][2]int{{0, 8}, {9, 13}, {14, 18}, {19, 23}, {24, 36}} {
			dst = appendHex(dst, text[group[0]:group[1]])
		}
		if len(dst) == start+1+16 {
			return dst, uuidLength
		}
		dst = dst[:start]
	}
	dst = appendHex(append(dst, markHex, 0), text[:min(len(text), maxHex)])
	n := 2 * (len(dst) - start - 2)
	if n < minHex {
		return dst[:start], 0
	}
	dst[start+1] = byte(n / 2)
	return dst, n
}

// unpack appends the text that packed encodes to dst, up to a truncated mark.
func unpack(dst, packed []byte) []byte {
	for i := 0; i < len(packed); {
		c := packed[i]
		i++
		if c-1 >= markByte {
			dst = append(dst, c)
			continue
		}
		switch {
		case c == markUUID && len(packed)-i >= 16:
			dst = appendUUID(dst, packed[i:i+16])
			i += 16
		case c == markHex && i < len(packed) && len(packed)-i > int(packed[i]):
			n := int(packed[i])
			for _, b := range packed[i+1 : i+1+n] {
				dst = append(dst, hexDigits[b>>4], hexDigits[b&0xf])
			}
			i += 1 + n
		case c == markByte && i < len(packed):
			dst = append(dst, packed[i])
			i++
		default:
			return dst
		}
	}
	return dst
}

func appendUUID(dst, raw []byte) []byte {
	for i, b := range raw {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = append(dst, hexDigits[b>>4], hexDigits[b&0xf])
	}
	return dst
}

// appendHex appends the bytes that pairs of digits encode, up to the first other character.
func appendHex(dst, text []byte) []byte {
	for i := 0; i+1 < len(text); i += 2 {
		high, low := hexDigit(text[i]), hexDigit(text[i+1])
		if high|low > 0xf {
			break
		}
		dst = append(dst, high<<4|low)
	}
	return dst
}

// hexDigit returns the value of a digit, a number above 15 for anything else.
func hexDigit(c byte) byte {
	if c -= '0'; c <= 9 {
		return c
	}
	if c -= 'a' - '0'; c <= 5 {
		return c + 10
	}
	return 0xff
}

// hexDigits are the digits by value.
const hexDigits = "0123456789abcdef"

func isWordByte(c byte) bool { return c-'0' <= 9 || c|0x20-'a' <= 25 }
