// Package schemas owns the analysis types: their registration, versions and rendering, and the validation of analyses
// against them, which may call other services (CONTRACT section 7). It is the only user of jsonschema, which validates.
//
// The library can neither be bounded nor stopped by its caller, so that schemas are bounded before it validates by them: a
// schema that leads to too many others or recurses twice at one place is not registered. A validation ends when its time is
// over, and the version of the type is quarantined. Regular expressions that the library cannot compile are an extension of it.
//
// It must not import other packages of tutti than core; what stores the analysis types is behind an interface.
package schemas
