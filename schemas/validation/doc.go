// Package validation compiles JSON Schemas and validates documents against them with the library jsonschema, of which it is the only
// user; it reports all violations of a document with pointer, keyword and message.
//
// The library's work can be neither bounded nor stopped by its caller. So Compile rejects a schema that expands to too many schemas or
// that recurses twice at one place, and regular expressions that the library cannot compile or stop are an extension of it.
package validation
