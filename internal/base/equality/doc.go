// Package equality decides whether two documents are the same. The order of members, white space and how a string is escaped make no
// difference, nor does the order of the arrays in which the upstream keeps none.
//
// It imports internal/base/jsontext only.
package equality
