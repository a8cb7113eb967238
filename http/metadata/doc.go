// Package metadata is the surface of the analysis types and of the built-in metadata repository (CONTRACT sections 7 and 8). It imports
// the core of http, no other surface.
package metadata
