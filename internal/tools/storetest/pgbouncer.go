//go:build services

package storetest

import (
	"bufio"
	"cmp"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tutti/internal/tools/testkit"
)

// PgBouncer starts a PgBouncer in transaction mode before the server of PostgresURL, which ends with the test. It returns the URL of a new,
// empty database through it, and the URL of that database on the server. settings are lines of its configuration.
func PgBouncer(t testing.TB, settings ...string) (pooled, direct string) {
	t.Helper()
	direct, _ = PostgresDatabase(t)
	server, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath(cmp.Or(os.Getenv("TUTTI_TEST_PGBOUNCER"), "pgbouncer"))
	if err != nil {
		t.Fatal("there is no PgBouncer: eval \"$(deploy/local/pgbouncer | sed 's/^/export /')\"")
	}
	_, port, _ := net.SplitHostPort(testkit.NewAddress(t))
	password, _ := server.User.Password()
	lines := []string{
		"[databases]", fmt.Sprintf("* = host=%s port=%s user=%s password=%s", server.Hostname(), server.Port(), server.User.Username(), password),
		"[pgbouncer]", "listen_addr = 127.0.0.1", "listen_port = " + port, "unix_socket_dir =", "auth_type = any", "pool_mode = transaction",
		"default_pool_size = 4",
	}
	if os.Getuid() == 0 { // it refuses to be root
		lines = append(lines, "user = nobody")
	}
	file := filepath.Join(t.TempDir(), "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(strings.Join(append(lines, settings...), "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	process := exec.Command(program, file)
	log, err := process.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	up := make(chan bool, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if strings.Contains(lines.Text(), "process up") {
				up <- true
			}
		}
		up <- false
	}()
	t.Cleanup(func() {
		_ = process.Process.Kill()
		<-read
		_ = process.Wait() // killed
	})
	if !<-up {
		t.Fatal("PgBouncer does not start")
	}
	server.Host = "127.0.0.1:" + port
	return server.String(), direct
}
