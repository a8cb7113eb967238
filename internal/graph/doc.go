// Package graph owns the GraphQL of the catalogues (CONTRACT section 5): it validates an operation, plans the fewest questions
// to the index that answer it, asks them through a search.View, and writes the answer from the bytes of the documents.
//
// # Errors
//
// What is wrong with a request is told before anything is done, and refuses it whole: the query, its size, its variables, and
// arguments of fields, filters among them. What fails afterwards is told at the fields that it concerns, which are null.
//
// # What the schema leaves open
//
// The total of hits with trackTotalHits:false is the number of documents up to the end of the page: total must not be null, and
// nothing was counted. Of a field that has several values in a document, and is not declared as a list, the first is returned, and
// the response says so once in extensions.warnings. top_hits is an object for one document, and a list where size asks for more. The
// buckets of a range are in the order of its bounds.
package graph
