// Package paging encodes the cursors of lists and limits the sizes of their pages.
package paging

import (
	"encoding/binary"
	"hash/crc32"

	"tutti/internal/core"
	"tutti/internal/queue/subjects"
)

const (
	// defaultPage and maxPageSize are the default and the largest page size of a list.
	defaultPage = 50
	maxPageSize = 1000

	// sumBytes is the size of the checksum at the start of a cursor.
	sumBytes = 4
)

// EncodeCursor returns the cursor of a list that continues after position. It names its list, so that a cursor of
// another list, or an invented one, is rejected instead of returning an arbitrary page.
func EncodeCursor(list, position string) string {
	sum := crc32.ChecksumIEEE([]byte(list + "\x00" + position))
	return subjects.EncodeToken(string(binary.BigEndian.AppendUint32(nil, sum)) + position)
}

// DecodeCursor reverses EncodeCursor; CodeInvalid for a cursor that is not of this list.
func DecodeCursor(list, cursor string) (string, error) {
	raw, err := subjects.DecodeToken(cursor)
	if err != nil {
		return "", InvalidCursor(err)
	}
	if len(raw) <= sumBytes || EncodeCursor(list, raw[sumBytes:]) != cursor {
		return "", InvalidCursor(nil)
	}
	return raw[sumBytes:], nil
}

// InvalidCursor returns the error of a cursor that is not one of its list.
func InvalidCursor(err error) error {
	return &core.Error{
		Code: core.CodeInvalid, Message: "the cursor is not one of this list",
		Hint: "use the cursor returned with the previous page, or omit it to start with the first page", Err: err,
	}
}

// Size returns the size of a page for a requested limit: 50 for none, at most 1000.
func Size(limit int) int {
	if limit <= 0 {
		return defaultPage
	}
	return min(limit, maxPageSize)
}
