package queuetest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startWait bounds the start of a program.
const startWait = time.Minute

// RunProgram starts nats-server's program with JetStream in dir on an address, whose port may be 0, and returns its URL and what stops it.
func RunProgram(t testing.TB, program, dir, address string) (url string, stop func()) {
	t.Helper()
	own := t.TempDir()
	conf := filepath.Join(own, "nats.conf")
	if strings.HasSuffix(address, ":0") {
		address = strings.TrimSuffix(address, "0") + "-1"
	}
	content := fmt.Sprintf("listen: %q\nports_file_dir: %q\njetstream {store_dir: %q, sync_interval: always, max_mem: 64MB, max_file: 1TB}\n",
		address, own, dir)
	if err := os.WriteFile(conf, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(own, "log"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "-c", conf)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait()
		_ = log.Close()
	}()
	stop = func() {
		_ = command.Process.Signal(syscall.SIGINT)
		<-ended
	}
	ports := filepath.Join(own, filepath.Base(program)+"_"+strconv.Itoa(command.Process.Pid)+".ports")
	deadline, tick := time.After(startWait), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for {
		var at struct{ Nats []string }
		if written, err := os.ReadFile(ports); err == nil && json.Unmarshal(written, &at) == nil && len(at.Nats) > 0 {
			return at.Nats[0], stop
		}
		select {
		case <-tick.C:
			continue
		case <-ended:
		case <-deadline:
			stop()
		}
		output, _ := os.ReadFile(log.Name())
		t.Fatalf("%s does not start: %s", program, output)
	}
}
