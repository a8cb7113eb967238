// Package schemas registers, versions and renders analysis types, and validates analyses against them (CONTRACT section 7). It must not
// import other packages of tutti than core and its own: the analysis types are stored behind an interface.
//
// An analysis goes through validation, which applies the rendered JSON Schema, and external, which calls the external validation
// services. Both read the tree of jsontree and report violations. A validation that exceeds its time puts its version of the type into
// quarantine.
package schemas
