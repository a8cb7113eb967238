// Package dsl encodes searches in Elasticsearch's Query DSL and decodes their responses: filters, sorts and aggregations, hits and the
// results of aggregations. It knows no cluster state and sends nothing.
package dsl
