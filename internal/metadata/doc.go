// Package metadata is the built-in metadata repository: studies, analyses and their states, and the outbox, which holds an event
// for every change that affects the index (CONTRACT section 8).
//
// An analysis is stored as its document, the bytes that clients and the index receive; the other columns exist for queries. Package analysis
// reads and writes these bytes.
// Input is validated completely before it is stored, outside of any transaction; a change and its event are written in one
// transaction.
//
// It must not import other packages of tutti than core, store and metadata/analysis.
package metadata
