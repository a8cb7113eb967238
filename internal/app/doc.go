// Package app connects the parts of tutti: Start creates and starts every part of a configuration in order, Stop
// stops them in reverse order. It is the only package that imports all others; only cmd/tutti and the tools (demo,
// bench) may import it.
package app
