// Package validation compiles JSON Schemas and validates documents against them with the library jsonschema, of which it is the only
// user; it reports all violations of a document with pointer, keyword and message.
//
// A caller can neither bound nor stop the library's work. So Compile rejects a schema that expands to too many schemas or that can
// recurse to the same place in two ways, and an extension of the library handles the regular expressions that the library cannot
// compile or stop.
package validation
