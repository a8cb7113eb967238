// Package housekeeping is what a process does by itself at intervals, so that jobs and indices become right without a caller. Contents knows
// whether each index has what its repository has: whether a run has filled it, what the last comparison found, whether notifications were
// lost, and whether the queue takes Requests; it queues the runs that it may, and has a reason of Health for the rest. Jobs counts jobs, ends
// those that have lost their Requests, queues runs that are due, and removes what is old.
//
// Another state of an index that an operator must know is a check of Contents, another task of one process among several a task like Prune.
// internal/app decides when each is called. It must not import internal/app.
package housekeeping
