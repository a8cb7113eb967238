// Package document reads JSON documents against a tree of fields (mapping.Field): it checks them as Elasticsearch does, derives the fields
// that a tree lacks, passes values on, and removes members. Both engines use it, so that they agree. It imports only internal/core,
// internal/base, internal/filter/fieldtype and internal/index/mapping, never an engine; mapping knows nothing of documents.
//
// All reading is one pass of a scanner, which is strict and copies nothing. On top of it:
//
//   - a Checker reports why a document does not fit the tree (a *ParsingError), and a Walker reads what a Checker once accepted. Both pass
//     the values of the tree's fields to a Sink;
//   - Visit passes all members to a Visitor, and Leaves all scalars to a function, whatever a tree has;
//   - Derive, Grow and Empties report what a document has that the tree lacks; Remove leaves members out.
//
// A value is a scalar or, under a field that is neither an object nor nested, a whole object, as bytes of the document with its Kind: the
// inside of a string with its escapes, or JSON text. The elements of an array are values one by one; null, [] and {} have none.
//
// Which values a type accepts is added in Checker.takes; which type a new field gets, in deriver; what to do about a rejected document, in
// RejectionHint.
package document
