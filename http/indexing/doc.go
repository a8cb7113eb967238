// Package indexing is the surface of triggers, jobs, dead letters and notifications (CONTRACT section 1). It imports the core of http,
// no other surface.
package indexing
