// Package indexing is the surface of triggers, jobs, dead letters and notifications (CONTRACT section 1). It imports http/api and
// http/problem, no other surface.
package indexing
