// Package local reads the built-in metadata repository as an upstream: from its store, not by HTTP.
//
// It must not import other packages of tutti than core; the repository is behind an interface.
package local
