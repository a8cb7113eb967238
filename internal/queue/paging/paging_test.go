package paging_test

import (
	"testing"

	"tutti/internal/queue/paging"
)

func FuzzCursor(f *testing.F) {
	f.Add("jobs", "0199b2a7-3c2f-7a01-9d7e-0d2f6c1f7a10", "dead-letters")
	f.Add("a", "\x00", "a\x00")
	f.Add("", "", "!")
	f.Add("jobs", "x", paging.EncodeCursor("jobs", "x")+"\n")
	f.Fuzz(func(t *testing.T, list, position, cursor string) {
		if got, err := paging.DecodeCursor(list, paging.EncodeCursor(list, position)); position != "" && (err != nil || got != position) {
			t.Errorf("%q becomes %q, %v", position, got, err)
		}
		if got, err := paging.DecodeCursor(list, cursor); err == nil && paging.EncodeCursor(list, got) != cursor {
			t.Errorf("%q is taken for %q", cursor, paging.EncodeCursor(list, got))
		}
	})
}
