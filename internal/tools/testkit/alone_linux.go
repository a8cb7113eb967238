package testkit

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// Alone runs the test in a process of its own, which is never root's, and reports whether this is that process.
func Alone(t *testing.T) bool {
	t.Helper()
	const inside = "TUTTI_TEST_ALONE"
	if os.Getenv(inside) != "" {
		return true
	}
	child := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), inside+"=1")
	if os.Geteuid() == 0 {
		const unprivileged = 65534
		child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
	}
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}
