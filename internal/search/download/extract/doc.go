// Package extract finds the values of selected fields in documents, in one pass over their bytes and without decoding them.
//
// Documents must be valid JSON, which is checked before they are written to the index. For invalid JSON the values are
// undefined, but they lie within the document, and reading always ends.
//
// It may import internal/index/mapping.
package extract
