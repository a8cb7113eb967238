// Package match finds the documents of a segment for which a filter holds. A Plan has each distinct condition of a search's filters once, as a
// Clause; a View evaluates them on one segment, each at most once, whichever facets and pages ask for it. Rows are documents, or the elements
// of a nested path. A new operation of filters is a case of Clause.prepare and View.evaluate.
//
// Of tutti it imports the filters, and segment with its fieldvalue.
package match
