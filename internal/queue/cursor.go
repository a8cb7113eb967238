package queue

import (
	"encoding/binary"
	"hash/crc32"

	"tutti/internal/core"
)

// A cursor names the list that it goes on with, so that one of another list, or a made-up one, is refused instead of
// showing an arbitrary page.
const (
	deadLetterCursor = "dead-letters"
	jobCursor        = "jobs"

	// sumBytes is the size of the sum that a cursor begins with.
	sumBytes = 4
)

// encodeCursor returns the cursor of a list that goes on behind position.
func encodeCursor(list, position string) string {
	sum := crc32.ChecksumIEEE([]byte(list + "\x00" + position))
	return EncodeToken(string(binary.BigEndian.AppendUint32(nil, sum)) + position)
}

// decodeCursor reverses encodeCursor; CodeInvalid for what it never gave for this list.
func decodeCursor(list, cursor string) (string, error) {
	raw, err := DecodeToken(cursor)
	if err != nil {
		return "", invalidCursor(err)
	}
	if len(raw) <= sumBytes || encodeCursor(list, raw[sumBytes:]) != cursor {
		return "", invalidCursor(nil)
	}
	return raw[sumBytes:], nil
}

func invalidCursor(err error) error {
	return &core.Error{
		Code: core.CodeInvalid, Message: "the cursor is not one of this list",
		Hint: "take it from the page before, or leave it out to begin with the first", Err: err,
	}
}
