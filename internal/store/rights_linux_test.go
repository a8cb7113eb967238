package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"tutti/internal/core"
	"tutti/internal/store"
	"tutti/internal/tools/testkit"
)

// TestAdviceOfRights: a store whose folder or file the process may not use is opened, or inspected, once it may, as the hints say.
func TestAdviceOfRights(t *testing.T) {
	if !testkit.Alone(t) {
		return
	}
	open := func(dir string) error {
		s, err := store.Open(t.Context(), store.Config{Dir: dir})
		if err != nil {
			return err
		}
		return s.Close(t.Context())
	}
	inspect := func(dir string) error {
		_, err := store.Inspect(t.Context(), store.Config{Dir: dir})
		return err
	}
	for name, c := range map[string]struct {
		denied, dir string
		mode        os.FileMode
		inspect     bool
	}{
		"a file":                        {"store/tutti.db", "store", 0, false},
		"the folder of a file":          {"store", "store", 0o500, false},
		"a folder that is to be filled": {"empty", "empty", 0o500, false},
		"a folder that is to be made":   {"", "made", 0o500, false},
		"inspecting a file":             {"store/tutti.db", "store", 0, true},
		"inspecting a folder":           {"store", "store", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if err := os.Mkdir(filepath.Join(root, "empty"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := open(filepath.Join(root, "store")); err != nil {
				t.Fatal(err)
			}
			do, code, message := open, core.CodeInvalid, "opening the store: its file cannot be written"
			hint := "tutti's user needs write access to the data directory and its files"
			if c.inspect {
				do, code, message = inspect, core.CodeForbidden, "the store's file cannot be opened"
				hint = "make tutti's user its owner"
			}
			right := func(mode os.FileMode) {
				if err := os.Chmod(filepath.Join(root, c.denied), mode); err != nil {
					t.Fatal(err)
				}
			}
			right(c.mode)
			err := do(filepath.Join(root, c.dir))
			wantError(t, err, code, message)
			if core.HintOf(err) != hint {
				t.Errorf("the hint is %q, want %q", core.HintOf(err), hint)
			}
			right(0o700)
			if err := do(filepath.Join(root, c.dir)); err != nil {
				t.Errorf("with the right: %v", err)
			}
		})
	}
}
