// Package display owns what the command line shows of an answer: tables, texts that are safe for a terminal, and the
// progress of a job. It imports internal/client and internal/core and asks no server itself.
package display
