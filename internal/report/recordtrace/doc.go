// Package recordtrace is the answer to the question where a record is: a Trace with one Part for the upstream, the index, the queue, the
// jobs and the dead letters, each with its own status. It owns the members and the statuses that clients see, as JSON; internal/report/why
// collects them, the HTTP routes and the command line show them.
//
// A new part is a member of Trace whose type embeds Part; its statuses are named Status. It may import internal/core and
// internal/core/idlist only.
package recordtrace
