// Package federation asks the nodes of federations and adds up what they say (CONTRACT section 5, Federation): the catalogues of
// other servers, which speak the GraphQL of Arranger, and the catalogue whose configuration names them. It knows no transport
// but HTTP, and no engine: its own catalogue is asked as a client of it would.
//
// # Finding out fields
//
// At start each remote node is asked which aggregations it has, and again every few minutes. Nothing waits for that. A node that
// never answered it is not asked for anything else: it is listed with no hits and with the reason. One that says that it allows no
// introspection is not asked again before the process restarts; one that does not answer is, with growing pauses; one that answers
// something else that is of no use is at the pace of those that are fine. What was once found out stays, whatever is said later.
//
// # Adding up
//
// The documents of all nodes together are what is counted, so each number is what one index with all of them would give, with
// these exceptions: documents of a node that lacks a field, or that did not give it, count under ___aggregation_not_available___
// where values are counted, and not at all in numbers; and numbers of distinct values are counted from the values themselves.
// A field that no node gave is null. A node that lacks a field of the filter does what it does with any filter: Arranger finds
// nothing, tutti refuses, which is then that node's error.
//
// # Errors of a node
//
// Nothing of them tells where a node is, nor what the client's headers hold. Messages of a remote node are shown when they are
// about the question, and only their code when they are about itself. A node that gives data beside errors has its data counted,
// and the status ERROR.
package federation
