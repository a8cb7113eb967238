// Package extract finds the values of chosen fields in documents, in one pass over their bytes and without decoding them.
//
// Documents are JSON: whoever wrote them to the index saw to it. Of what is none, nothing is found that would lie outside of it,
// and it ends.
//
// It may import internal/index/mapping.
package extract
