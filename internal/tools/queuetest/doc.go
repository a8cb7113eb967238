// Package queuetest runs a NATS cluster in the test's process, makes the files of secured servers, and reads messages. Only tests and the
// bench may import it. Of tutti it imports only testkit.
package queuetest
