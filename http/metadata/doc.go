// Package metadata is the surface of the analysis types and of the built-in metadata repository (CONTRACT sections 7 and 8). It imports
// shared packages of http, such as http/api, but no other surface.
package metadata
