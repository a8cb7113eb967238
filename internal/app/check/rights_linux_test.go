package check_test

import (
	"os"
	"path/filepath"
	"testing"

	"tutti/internal/app/check"
	"tutti/internal/tools/testkit"
)

// TestStoreRights: of a store that tutti's user can read but not write the check says so, and no more once it has the right that the hint names.
func TestStoreRights(t *testing.T) {
	if !testkit.Alone(t) {
		return
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "store", "tutti.db")
	_, end := openStore(t, dir)
	end()
	look := func(mode os.FileMode, want string) {
		t.Helper()
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		wantLines(t, of(check.Run(t.Context(), builtInConfig(t, dir, ""), check.Options{}), "store"), want)
	}
	look(0o400, "fail: embedded; "+file+" cannot be written: permission denied -> grant tutti's user write access to it and to the files beside it")
	look(0o600, "ok: embedded; *")
}
