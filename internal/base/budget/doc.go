// Package budget bounds the memory of large bodies: of requests, of fetched records, and of the results of processing them.
//
// It imports nothing of tutti but internal/core. Packages that hold bodies declare an interface with the method of Share that they call.
package budget
