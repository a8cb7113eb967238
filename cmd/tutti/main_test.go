package main

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"tutti/cmd/tutti/internal/command"
	"tutti/internal/tools/testkit"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tutti": main, "curl": curl, "openssl": openssl})
}

// TestScripts runs the scripts of testdata/script against the command. $ADDRESS is an unused host and port, where the commands expect a server.
// The scripts' commands:
//
//	answers URL                    waits until a GET of URL returns 200
//	certificate CERTFILE KEYFILE   writes a key pair
//	eventually COMMAND… -- TEXT    repeats a command until it exits with 0 and its stdout contains TEXT, after "!--" until it does not
//	exits CODE COMMAND…            checks the exit code
//	interrupted TEXT COMMAND…      sends SIGINT once stderr contains TEXT, and expects exit code 1
//	member, song                   read JSON and start a repository (song_test.go)
//	stub                           starts a server of analysis types, keys and catalogues (stub_test.go)
//	terminate                      sends SIGTERM to the last command that was started in the background
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			address, err := testkit.FreeAddress()
			if err != nil {
				return err
			}
			env.Setenv("ADDRESS", address)
			env.Setenv("TUTTI_SERVER", "http://"+address) // not the default, where a tutti of this machine may answer
			env.Values[songKey{}] = &song{release: make(chan struct{})}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"answers": answers, "terminate": terminate, "song": songCommand, "member": member, "eventually": eventually,
			"exits": exits, "interrupted": interrupted, "stub": startStub, "certificate": certificate,
		},
	})
}

// certificate writes a certificate for localhost and 127.0.0.1 and its key.
func certificate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: certificate CERTFILE KEYFILE")
	}
	cert, key, err := testkit.Certificate(time.Now().Add(-time.Hour), time.Now().Add(30*24*time.Hour), "localhost", "127.0.0.1")
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), cert, 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), key, 0o600))
}

func answers(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: answers URL")
	}
	ctx, cancel := context.WithTimeout(context.Background(), testkit.HangLimit)
	defer cancel()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		if status(ctx, args[0]) == http.StatusOK {
			return
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			ts.Fatalf("%s does not answer", args[0])
		}
	}
}

func eventually(ts *testscript.TestScript, neg bool, args []string) {
	at := slices.IndexFunc(args, func(a string) bool { return a == "--" || a == "!--" })
	if neg || at < 1 || at != len(args)-2 {
		ts.Fatalf("usage: eventually COMMAND… --|!-- text")
	}
	deadline := time.Now().Add(testkit.HangLimit)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		err := ts.Exec(args[0], args[1:at]...)
		if err == nil && strings.Contains(ts.ReadFile("stdout"), args[at+1]) == (args[at] == "--") {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%v: in vain", args)
		}
		<-look.C
	}
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](ts.Exec(args[1], args[2:]...)); ok {
		code = exit.ExitCode()
	}
	if code != atoi(ts, args[0]) {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

func interrupted(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: interrupted TEXT COMMAND…")
	}
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "TUTTI_SERVER="+ts.Getenv("TUTTI_SERVER"))
	stderr, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && !strings.Contains(lines.Text(), args[0]) {
		ts.Logf("%s", lines.Text())
	}
	ts.Check(cmd.Process.Signal(syscall.SIGINT))
	var rest strings.Builder
	for lines.Scan() {
		rest.WriteString(lines.Text() + "\n")
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != command.ExitFailed {
		ts.Fatalf("exit code %d", code)
	}
	ts.Check(os.WriteFile(ts.MkAbs("interrupted"), []byte(rest.String()), 0o600))
}

func terminate(ts *testscript.TestScript, neg bool, args []string) {
	running := ts.BackgroundCmds()
	if neg || len(args) != 0 || len(running) == 0 {
		ts.Fatalf("usage: terminate, with a command in the background")
	}
	ts.Check(running[len(running)-1].Process.Signal(syscall.SIGTERM))
}

// status returns the status of a GET, 0 when there is no answer.
func status(ctx context.Context, url string) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}
