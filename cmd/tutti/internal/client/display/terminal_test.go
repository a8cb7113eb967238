package display_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"tutti/cmd/tutti/internal/client/display"
)

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// TestTerminalOf: only terminals are accepted, and the environment is respected.
func TestTerminalOf(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, w := range map[string]any{"buffer": &bytes.Buffer{}, "file": file, "nothing": nil, "no file": (*os.File)(nil)} {
		if _, ok := display.TerminalOf(w, environment()); ok {
			t.Errorf("%s is a terminal", name)
		}
	}
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminal to be had here: %v", err)
	}
	defer master.Close()
	if _, ok := display.TerminalOf(master, environment("TERM", "dumb")); ok {
		t.Error("a dumb terminal is drawn on")
	}
	terminal, ok := display.TerminalOf(master, environment("TERM", "xterm", "COLUMNS", "x"))
	if !ok || !terminal.Colour() {
		t.Fatalf("terminal %v, %v", terminal, ok)
	}
	if columns, rows := terminal.Size(); columns != 80 || rows != 24 {
		t.Errorf("a terminal that does not tell has %d columns and %d rows, want 80 and 24", columns, rows)
	}
	terminal, _ = display.TerminalOf(master, environment("COLUMNS", "132", "NO_COLOR", "1"))
	if columns, _ := terminal.Size(); columns != 132 || terminal.Colour() {
		t.Errorf("%d columns, colour %v; want 132 without", columns, terminal.Colour())
	}
}
