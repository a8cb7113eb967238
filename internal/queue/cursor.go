package queue

import (
	"encoding/binary"
	"hash/crc32"

	"tutti/internal/core"
)

// A cursor names its list, so that a cursor of another list, or an invented one, is rejected instead of returning an
// arbitrary page.
const (
	deadLetterCursor = "dead-letters"
	jobCursor        = "jobs"

	// sumBytes is the size of the checksum at the start of a cursor.
	sumBytes = 4
)

// encodeCursor returns the cursor of a list that continues after position.
func encodeCursor(list, position string) string {
	sum := crc32.ChecksumIEEE([]byte(list + "\x00" + position))
	return EncodeToken(string(binary.BigEndian.AppendUint32(nil, sum)) + position)
}

// decodeCursor reverses encodeCursor; CodeInvalid for a cursor that is not of this list.
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
		Hint: "use the cursor returned with the previous page, or omit it to start with the first page", Err: err,
	}
}
