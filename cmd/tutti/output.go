package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"tutti/internal/client/display"
	"tutti/internal/core"
)

// Exit codes. Every error except a job that ended partial is exitFailed.
const (
	exitOK      = 0
	exitFailed  = 1
	exitPartial = 2
)

// Values of --output.
const (
	outputText = "text"
	outputJSON = "json"
)

func outputs() []string { return []string{outputText, outputJSON} }

func checkOutput(output string) error {
	if !slices.Contains(outputs(), output) {
		return fmt.Errorf("--output is text or json, not %q", output)
	}
	return nil
}

// exitError is an error with its own exit code.
type exitError struct {
	code int
	// err is written to stderr; nil if everything was already printed.
	err error
}

// Error returns the text of the wrapped error.
func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

// Unwrap returns the wrapped error.
func (e *exitError) Unwrap() error { return e.err }

// report writes err to stderr and returns the exit code.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	code := exitFailed
	if coded, ok := errors.AsType[*exitError](err); ok {
		code = coded.code
		if coded.err == nil {
			return code
		}
	}
	printError(stderr, err)
	return code
}

// printError writes an error and its hint to stderr.
func printError(stderr io.Writer, err error) {
	_, _ = fmt.Fprintln(stderr, "tutti: "+display.PrintableLines(err.Error()))
	if hint := core.HintOf(err); hint != "" {
		_, _ = fmt.Fprintln(stderr, "       "+display.PrintableLines(hint))
	}
}

// printJSON writes a JSON text as one line.
func printJSON(w io.Writer, text json.RawMessage) error {
	_, err := fmt.Fprintf(w, "%s\n", bytes.TrimSpace(text))
	return err
}

// progressOf returns where and how progress is shown: as bars if cmd's stderr is a terminal, else as lines on stderr, or not at all
// with --output json.
func progressOf(cmd *cobra.Command, r *remote) (io.Writer, display.ProgressConfig) {
	out := cmd.ErrOrStderr()
	terminal, ok := display.TerminalOf(out, os.Getenv)
	switch {
	case ok:
		return out, display.ProgressConfig{Screen: terminal}
	case r.json():
		return io.Discard, display.ProgressConfig{}
	default:
		return out, display.ProgressConfig{}
	}
}
