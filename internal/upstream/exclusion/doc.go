// Package exclusion applies a repository's exclusion rules to the records that its client returns. It knows no type of repository:
// upstream.Type describes where the ids of a record are.
//
// It imports internal/core, internal/base/jsontext and internal/upstream.
package exclusion
