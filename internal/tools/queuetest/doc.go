// Package queuetest runs a NATS cluster in the test's process. It must not be imported outside tests, and imports nothing
// of tutti.
package queuetest
