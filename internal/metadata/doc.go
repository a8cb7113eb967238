// Package metadata is the built-in metadata repository: studies, analyses and their states, and the outbox, which tells of
// every change that can show in the index (CONTRACT section 8).
//
// An analysis is stored as its document, the bytes that clients and the index get; the other columns are what it is found
// by. Whatever a client sends is checked whole before it is stored, outside of any transaction; a change and its event are
// one transaction.
//
// It must not import other packages of tutti than core and store.
package metadata
