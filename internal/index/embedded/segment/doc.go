// Package segment owns the columns of the embedded index: immutable segments of documents, how they are built from documents,
// merged with each other, written to a file and read from it. It knows nothing of filters, transactions or durability.
//
// A segment has one row for each document, numbered from 0, and one row space for each nested path: the elements of a document
// stand one after the other, and know the row that holds them. Each field with values has a Column: its distinct values in
// order, and for each row of the field's path the ordinals of its values.
//
// A Builder makes small segments fast; Merge makes large ones, in which texts are packed and equal slices are shared. A file is
// the slices of a segment as they stand in memory.
package segment
