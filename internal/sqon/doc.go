// Package sqon owns the filter language of the catalogues, SQON (CONTRACT section 4): parsing with the JSON pointer of every
// fault, normalizing into a typed tree, validating against a catalogue's fields, printing, and the JSON Schema that says the
// same as the parser. It knows no index and no catalogue, and imports internal/core alone.
package sqon
