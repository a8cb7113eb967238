// Package queuetest runs a NATS cluster in the test's process, and reads messages. Only tests and the bench may import it. It imports nothing
// of tutti.
package queuetest
