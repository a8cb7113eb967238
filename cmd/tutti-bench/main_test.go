package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestRun runs a benchmark that needs no server, and rejects what the command line does not know.
func TestRun(t *testing.T) {
	for _, c := range []struct {
		name, args, stdout, stderr string
		code                       int
	}{
		{name: "help", args: "--help", stdout: "Those that need Elasticsearch are skipped"},
		{name: "unknown benchmark", args: "nothing", stderr: `tutti-bench: invalid argument "nothing" for "tutti-bench"`, code: 1},
		{name: "no folder for JSON", args: "--json /nowhere/figures.json download", stderr: "tutti-bench: open /nowhere/figures.json: no such file", code: 1},
		{name: "no records", args: "--records -1", stderr: "tutti-bench: the numbers of records, studies and pairs must be positive", code: 1},
		{name: "a real engine is needed", args: "--elasticsearch= search", stderr: "tutti-bench: search needs a real engine: set --elasticsearch", code: 1},
		{name: "no server", args: "--tutti /nowhere/tutti --quick dead-letters", stderr: "starting /nowhere/tutti", code: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if code := run(strings.Fields(c.args), &stdout, &stderr); code != c.code {
				t.Errorf("exit code %d, not %d", code, c.code)
			}
			if !strings.Contains(stdout.String(), c.stdout) || !strings.Contains(stderr.String(), c.stderr) {
				t.Errorf("stdout:\n%s\nstderr:\n%s", &stdout, &stderr)
			}
		})
	}
}
