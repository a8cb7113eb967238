// Package evaluate executes searches of the embedded index: filters, facets and sort orders over segments. It reads segments only,
// never the index file.
package evaluate
