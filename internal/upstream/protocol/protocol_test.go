package protocol_test

import (
	"reflect"
	"slices"
	"testing"

	"tutti/internal/core"
	"tutti/internal/upstream/protocol"
)

// TestTypes: each type of repository is listed once and found by its name; all but the built-in one can be opened and read.
func TestTypes(t *testing.T) {
	var names []core.RepositoryType
	for _, listed := range protocol.Types() {
		names = append(names, listed.Name)
		if builtIn := listed.Name == core.TypeLocal; builtIn != (listed.Open == nil) || builtIn && listed.Topic != "" {
			t.Errorf("%s: opened as another repository %v, topic %q", listed.Name, listed.Open != nil, listed.Topic)
		}
		if found := protocol.Of(listed.Name); found.Name != listed.Name {
			t.Errorf("%s is found as %s", listed.Name, found.Name)
		}
		if format, known := protocol.EventFormats()[listed.Name]; !known || !reflect.DeepEqual(format, listed.Events) {
			t.Errorf("the events of %s have the format %v, want %v", listed.Name, format, listed.Events)
		}
	}
	if want := []core.RepositoryType{core.TypeSong, core.TypeLyric, core.TypeLocal}; !slices.Equal(names, want) {
		t.Errorf("the types are %q, want %q", names, want)
	}
	for _, unknown := range []core.RepositoryType{"", "other"} {
		if found := protocol.Of(unknown); found.Name != core.TypeSong {
			t.Errorf("%q is %s", unknown, found.Name)
		}
	}
}
