// Package graphql implements the GraphQL API of the catalogues (CONTRACT section 5). An operation passes through two packages: request
// parses and validates it; plan plans as few index requests as possible, sends them through a view.View, and writes the response from
// the results. selection writes documents from their bytes; output has the JSON of values and errors. This package has the service
// with its caches, and the fields that are not read from documents: sets, the network, configs and introspection.
//
// # Errors
//
// An invalid request is rejected as a whole before anything is executed: errors in the query, its size, its variables, and
// arguments of fields including filters. Errors during execution are reported at their fields, which are null.
//
// # What the schema leaves open
//
// The total of hits with trackTotalHits:false is the number of documents up to the end of the page, because total must not be
// null and nothing was counted. A field that has several values in a document, but is not declared as a list, returns the first
// one, with a warning in extensions.warnings. top_hits is an object for one document, and a list for size above 1. The buckets of
// a range are ordered by its bounds.
package graphql
