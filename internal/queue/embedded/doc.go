// Package embedded owns the nats-server that tutti runs in its own process when no external one is configured, and the
// lock that keeps two processes off one data folder. It imports core and nats-server, and nothing else of tutti: package
// queue connects to what it starts.
package embedded
