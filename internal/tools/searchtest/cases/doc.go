// Package cases is the table of the search suites: a few documents, and the filters, facets and orders whose results in them were determined by
// CONTRACT sections 4 and 5.
package cases
