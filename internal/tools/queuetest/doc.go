// Package queuetest runs a NATS cluster in the test's process. Only tests and the bench may import it. It imports nothing
// of tutti.
package queuetest
