// Package model has the documents of the search suites as the oracle sees them: trees of elements, fields by path, and values of a
// class with their order and patterns.
package model
