// Package schemas owns the analysis types: their registration, versions and rendering, and the validation of analyses
// against them, which may ask other services (CONTRACT section 7). It is the only user of jsonschema, which checks and
// compiles schemas; analyses are checked here, so that the work of a check is bounded whatever its schema says.
//
// It must not import other packages of tutti than core; what keeps the analysis types is behind an interface.
package schemas
