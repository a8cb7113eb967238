// Package budget owns the one bound on the memory of large bodies: of requests, of fetched records, and of what is made of
// them.
//
// It imports nothing of tutti but internal/core. Those who hold bodies declare the method of Share that they call.
package budget
