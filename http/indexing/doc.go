// Package indexing is the surface of triggers, jobs, dead letters and notifications (CONTRACT section 1). It imports shared
// packages of http, such as http/api, but no other surface.
package indexing
