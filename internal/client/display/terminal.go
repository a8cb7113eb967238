package display

import (
	"os"
	"strconv"
)

// What is assumed of a terminal that does not tell its size.
const (
	defaultColumns = 80
	defaultRows    = 24
	// minColumns is the narrowest a picture is drawn for.
	minColumns = 20
)

// Terminal is where a picture can be drawn over itself.
type Terminal struct {
	file    *os.File
	columns int
	colour  bool
}

// TerminalOf reports whether w is a terminal that can be drawn on, given the environment. COLUMNS overrides the width;
// NO_COLOR (no-color.org) takes the colours away, and TERM=dumb the drawing.
func TerminalOf(w any, getenv func(string) string) (*Terminal, bool) {
	file, ok := w.(*os.File)
	if !ok || getenv("TERM") == "dumb" || !isTerminal(file) {
		return nil, false
	}
	t := &Terminal{file: file, colour: getenv("NO_COLOR") == ""}
	if n, err := strconv.Atoi(getenv("COLUMNS")); err == nil && n > 0 {
		t.columns = n
	}
	return t, true
}

// Size returns the terminal's columns and rows as they are now.
func (t *Terminal) Size() (columns, rows int) {
	columns, rows = sizeOf(t.file)
	if t.columns > 0 {
		columns = t.columns
	}
	if columns <= 0 {
		columns = defaultColumns
	}
	if rows <= 0 {
		rows = defaultRows
	}
	return max(columns, minColumns), rows
}

// Colour reports whether colours may be used.
func (t *Terminal) Colour() bool { return t.colour }
