// Package bench measures what tutti does on this machine, and prints it beside the target and beside the machine's own
// noise. Nothing in it is a constant of some other machine: a ratio compares runs that were made side by side. It
// drives the app over HTTP, as any client would; repositories, and engines that answer at once, run in processes of
// their own where their work must not count as tutti's. Nothing but cmd/tutti may import it.
package bench
