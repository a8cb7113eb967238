package dictionary

// Pack returns the packed form of text.
func Pack(text []byte) []byte { return pack(nil, text) }

// Unpack is the reverse of Pack.
func Unpack(packed []byte) []byte { return unpack(nil, packed) }
