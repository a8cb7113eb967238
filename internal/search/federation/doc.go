// Package federation queries the nodes of federations and merges their responses (CONTRACT section 5, Federation): the catalogues
// of other servers, which have Arranger's GraphQL API, and the catalogue whose configuration lists them. It uses only HTTP, and
// no engine: its own catalogue is queried as a client would query it.
//
// # Discovery of fields
//
// At start and every few minutes each remote node is queried for its aggregations. Nothing waits for that. A node that never
// responded is not queried for anything else: it is listed with no hits and with the reason. A node that reports that it does not
// allow introspection is not queried again before the process restarts. An unavailable node is retried with increasing pauses,
// and a node with any other invalid response at the normal interval. Discovered fields are kept, whatever a later discovery
// returns.
//
// # Merging
//
// The result is that of one index with the documents of all nodes, with these exceptions: documents of a node that lacks a field,
// or did not return it, count under ___aggregation_not_available___ for values, and not at all for numbers; and the number of
// distinct values is computed from the values themselves. A field that no node returned is null. A node that lacks a field of the
// filter treats the filter as usual: Arranger finds nothing, tutti rejects it, which is then the node's error.
//
// # Errors of a node
//
// Errors never reveal the address of a node or the client's headers. The messages of a remote node are shown if they are about
// the query; for errors of the node itself only the code is shown. A node that returns data with errors has its data counted, and
// the status ERROR.
package federation
