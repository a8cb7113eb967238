// Package embedded owns the nats-server that runs inside the tutti process when no external one is configured, and
// the lock that prevents two processes from using one data folder. Of tutti it imports only core and disk; package
// queue connects to the server.
package embedded
