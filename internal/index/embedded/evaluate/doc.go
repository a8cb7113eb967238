// Package evaluate owns the answers of the embedded index: filters, facets and orders over segments. It reads segments alone,
// never the index' file.
package evaluate
