package display

import (
	"os"
	"runtime"
	"strconv"

	"golang.org/x/term"
)

// Defaults for a terminal without a known size.
const (
	defaultColumns = 80
	defaultRows    = 24
	// minColumns is the minimum width of the view.
	minColumns = 20
)

// Terminal is a terminal that can be redrawn.
type Terminal struct {
	file    *os.File
	columns int
	colour  bool
}

// TerminalOf returns the terminal of w, and reports whether w is one that can be redrawn, given the environment. COLUMNS overrides the
// width; NO_COLOR (no-color.org) disables colours, and TERM=dumb redrawing. Consoles of Windows are not redrawn.
func TerminalOf(w any, getenv func(string) string) (*Terminal, bool) {
	file, ok := w.(*os.File)
	if !ok || getenv("TERM") == "dumb" || runtime.GOOS == "windows" {
		return nil, false
	}
	if _, _, err := sizeOf(file); err != nil {
		return nil, false
	}
	t := &Terminal{file: file, colour: getenv("NO_COLOR") == ""}
	if n, err := strconv.Atoi(getenv("COLUMNS")); err == nil && n > 0 {
		t.columns = n
	}
	return t, true
}

// Size returns the terminal's current columns and rows.
func (t *Terminal) Size() (columns, rows int) {
	columns, rows, _ = sizeOf(t.file)
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

// sizeOf returns the columns and rows of a terminal, 0 when unknown, and an error for other files. File.Fd would make the file block.
func sizeOf(f *os.File) (columns, rows int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	if controlErr := raw.Control(func(fd uintptr) { columns, rows, err = term.GetSize(int(fd)) }); controlErr != nil {
		return 0, 0, controlErr
	}
	return columns, rows, err
}
