package core_test

import (
	"strings"
	"testing"

	"tutti/internal/core"
)

// TestNewRecordRef: the parts of a RecordRef are those of a valid path; an error names the part.
func TestNewRecordRef(t *testing.T) {
	t.Parallel()
	ref, err := core.NewRecordRef("song.ca", "LIRI-JP", "a/b")
	if err != nil || ref.Repository() != "song.ca" || ref.Organization() != "LIRI-JP" || ref.ID() != "a/b" {
		t.Errorf("%+v, %v", ref, err)
	}
	for _, tt := range [][4]string{
		{"", "S", "A", "repository is empty"},
		{"song.ca", "..", "A", "organization must not be a relative path segment"},
		{"song.ca", "S", "", "id is empty"},
		{"song.ca", "S", strings.Repeat("x", 513), "513 bytes"},
		{"song.ca", "S", "a\nb", "id contains a control character"},
	} {
		ref, err := core.NewRecordRef(tt[0], tt[1], tt[2])
		if ref != (core.RecordRef{}) || core.CodeOf(err) != core.CodeInvalid || !strings.Contains(core.MessageOf(err), tt[3]) {
			t.Errorf("%q: got %+v, %v", tt, ref, err)
		}
	}
}
