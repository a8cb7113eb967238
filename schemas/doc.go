// Package schemas owns the analysis types: their registration, versions and rendering, and the validation of analyses
// against them, which may ask other services (CONTRACT section 7). It is the only user of jsonschema.
//
// It must not import other packages of tutti than core; what keeps the analysis types is behind an interface.
package schemas
