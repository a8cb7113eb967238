// Package schema owns the GraphQL schema of a catalogue (CONTRACT section 5): its text, made from the mapping, the same as
// gqlparser's tree with the types of introspection, and where in documents and in the index each of its fields leads.
package schema
