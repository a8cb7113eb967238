package main

import (
	"os"
	"testing"
)

// TestOwnCommand: the commands that the demo prints work where it was started: a release runs itself, a checkout its source.
func TestOwnCommand(t *testing.T) { //nolint:paralleltest // it changes the folder and the version of the process
	started, built := os.Args[0], version
	t.Cleanup(func() { os.Args[0], version = started, built })
	root := t.TempDir()
	for _, tt := range []struct{ folder, version, program, want string }{
		{root, "dev", "./tutti", "./tutti"},
		{root, "1.2.3", "/opt/my tools/tutti", `"/opt/my tools/tutti"`},
		{"../..", "1.2.3", "tutti", "tutti"},
		{"../..", "dev", "/tmp/go-build1/b001/exe/tutti", "go run ./cmd/tutti"},
	} {
		t.Run(tt.want, func(t *testing.T) {
			t.Chdir(tt.folder)
			os.Args[0], version = tt.program, tt.version
			if got := ownCommand(); got != tt.want {
				t.Errorf("got %s", got)
			}
		})
	}
}
