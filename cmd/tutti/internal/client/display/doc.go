// Package display formats what the command line shows: tables, text that is safe for a terminal, and the progress of a job. It imports
// cmd/tutti/internal/client and internal/core and calls no server itself.
package display
