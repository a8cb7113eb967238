// Package alert sends messages about failed jobs, paused repositories and new dead letters to webhooks.
//
// One of the processes of a queue, the leader, reads which jobs and dead letters were stored since the last time, and which
// repositories are paused. It adds them to a summary for each webhook and kind of event, and sends a summary when the interval since
// the one before has passed. The positions in the streams and the summaries that were not delivered are in one compare-and-swap cell,
// so that a restart or another leader continues exactly there. A message is sent again only if the process ends, or loses the
// queue, between sending it and recording that.
//
// It imports internal/core and internal/base/retry; the queue and the consumers are interfaces.
package alert
