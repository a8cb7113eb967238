// Package command has what every command of tutti shares: output, errors and exit codes, flags, completion.
//
// Its tests are in cmd/tutti.
package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/client/display"
	"tutti/internal/base/printable"
	"tutti/internal/core"
)

// Exit codes. Every error except a job that ended partial is exitFailed.
const (
	ExitOK      = 0
	ExitFailed  = 1
	ExitPartial = 2
)

// Values of --output.
const (
	OutputText = "text"
	OutputJSON = "json"
)

// LocalTimes is the help text about the times in tables.
const LocalTimes = "Times are in the local time zone; with --output json they are in UTC."

// Outputs returns the values of --output.
func Outputs() []string { return []string{OutputText, OutputJSON} }

// CheckOutput returns an error unless output is a value of --output.
func CheckOutput(output string) error {
	if !slices.Contains(Outputs(), output) {
		return fmt.Errorf("--output is text or json, not %q", output)
	}
	return nil
}

// ExitError is an error with its own exit code.
type ExitError struct {
	Code int
	// Err is written to stderr; nil if everything was already printed.
	Err error
}

// Error returns the text of the wrapped error.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns the wrapped error.
func (e *ExitError) Unwrap() error { return e.Err }

// Report writes err to stderr and returns the exit code.
func Report(stderr io.Writer, err error) int {
	if err == nil {
		return ExitOK
	}
	code := ExitFailed
	if coded, ok := errors.AsType[*ExitError](err); ok {
		code = coded.Code
		if coded.Err == nil {
			return code
		}
	}
	PrintError(stderr, err)
	return code
}

// PrintError writes an error and its hint to stderr.
func PrintError(stderr io.Writer, err error) {
	_, _ = fmt.Fprintln(stderr, "tutti: "+printable.Lines(err.Error()))
	if hint := core.HintOf(err); hint != "" {
		_, _ = fmt.Fprintln(stderr, "       "+printable.Lines(hint))
	}
}

// PrintJSON writes a JSON text as one line.
func PrintJSON(w io.Writer, text json.RawMessage) error {
	_, err := fmt.Fprintf(w, "%s\n", bytes.TrimSpace(text))
	return err
}

// ProgressOf returns where and how progress is shown: as bars if cmd's stderr is a terminal, else as lines on stderr, or not at all
// with --output json.
func ProgressOf(cmd *cobra.Command, r *Remote) (io.Writer, display.ProgressConfig) {
	out := cmd.ErrOrStderr()
	terminal, ok := display.TerminalOf(out, os.Getenv)
	switch {
	case ok:
		return out, display.ProgressConfig{Screen: terminal}
	case r.JSON():
		return io.Discard, display.ProgressConfig{}
	default:
		return out, display.ProgressConfig{}
	}
}
