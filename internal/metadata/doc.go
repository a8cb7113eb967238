// Package metadata is the built-in metadata repository: studies, analyses and their states, and the outbox, which tells of
// every change that can show in the index (CONTRACT section 8).
//
// It must not import other packages of tutti than core and store.
package metadata
