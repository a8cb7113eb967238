// Package response writes the response of a planned operation from the results of the index: documents, facets and buckets.
package response
