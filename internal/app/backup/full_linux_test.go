package backup_test

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"tutti/internal/app/backup"
	"tutti/internal/core"
)

// fullVariable makes TestUnpackFullDisk a child whose files must not grow beyond a limit.
const fullVariable = "TUTTI_TEST_FULL_BACKUP"

// TestUnpackFullDisk: files that cannot be written are an error, and nothing of the backup is left.
func TestUnpackFullDisk(t *testing.T) {
	if os.Getenv(fullVariable) == "" {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestUnpackFullDisk$")
		child.Env = append(os.Environ(), fullVariable+"=1")
		if out, err := child.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	raw, dir := archive(t), filepath.Join(t.TempDir(), "backup")
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1 << 20, Max: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	_, err := backup.Unpack(bytes.NewReader(raw), dir)
	wantCode(t, err, core.CodeUnavailable, "writing the files")
	wantEmpty(t, dir)
}
