// Package schema builds the GraphQL schema of a catalogue (CONTRACT section 5): its text, generated from the mapping; gqlparser's
// syntax tree of it with the introspection types; and the location of each field in documents and in the index.
package schema
