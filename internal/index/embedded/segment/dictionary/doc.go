// Package dictionary holds the distinct texts of a column in byte order. It owns their order, how many of them are packed, which form a
// packed text has, and the reading of both; it knows nothing of rows, fields and documents.
//
// Texts are the texts of a column, each with its ordinal: plain ones, which are read at once, or packed ones, whose ids and checksums
// take half the space and which are read in blocks. An Interner numbers texts in the order in which they come and sorts them at the
// end, a Builder takes texts that are in order already, and a Reader reads them in order.
//
// Another form of storing texts is an implementation of Texts, which its constructor New and its Builder choose. It may import the
// section file, whose sections the texts are.
package dictionary
