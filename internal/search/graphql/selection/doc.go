// Package selection selects fields from documents: a Builder reads the selection sets of an operation, and a Writer writes the
// selected fields from the bytes of a document, without decoding it.
package selection
