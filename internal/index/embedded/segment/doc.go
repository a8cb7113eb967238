// Package segment implements the columnar segments of the embedded index: immutable sets of documents, built from JSON documents,
// merged with each other, written to a file and read back. It does not handle filters, transactions or durability.
//
// A segment has one row per document, numbered from 0, and a separate row space per nested path: the elements of a document are
// consecutive rows, and each row has the number of its parent row. Each field with values has a Column: the sorted distinct values,
// and for each row of the field's path the ordinals of its values.
//
// A Builder makes small segments fast. A merge makes large segments, whose texts are packed and whose equal slices are stored once, as
// a file, one column after another. A segment file holds the segment's slices as they are in memory, so a segment can use the bytes of a
// mapped file. These must stay mapped as long as anything of the segment is read.
//
// Below it, fieldvalue says which values of a field are stored and in what form, dictionary holds the distinct texts of a column, and
// sectionfile is the format of the file. A change of what is stored of a value begins in fieldvalue; a new slice of a column is visited
// in file.go, kept through a merge in mergecolumn.go, and checked in verify.go when it was read.
package segment
