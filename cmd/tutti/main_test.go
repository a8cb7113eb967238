package main

import (
	"context"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tutti": main})
}

// TestScripts runs the scripts of testdata/script against the command. ADDRESS is a free one; "answers URL" waits
// until a GET of URL is 200, "terminate" sends SIGTERM to what was last started in the background.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			env.Setenv("ADDRESS", listener.Addr().String())
			return listener.Close()
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"answers": answers, "terminate": terminate},
	})
}

func answers(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: answers URL")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
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

func terminate(ts *testscript.TestScript, neg bool, args []string) {
	running := ts.BackgroundCmds()
	if neg || len(args) != 0 || len(running) == 0 {
		ts.Fatalf("usage: terminate, with a command in the background")
	}
	ts.Check(running[len(running)-1].Process.Signal(syscall.SIGTERM))
}

// status gives the status of a GET, 0 when there is no answer.
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
