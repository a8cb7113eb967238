// Package query defines the meaning of filters (CONTRACT section 4). It lowers a checked SQON to a small typed tree that states at
// which rows each condition is evaluated, so that an engine only needs to find the rows that match a clause and to lift element
// rows to their parents. It is independent of the engines, and may import internal/core, internal/filter/sqon and internal/index/mapping.
//
// # Rows
//
// A document is one row of the path "". Each nested element is a row of its nested path, below its parent row. A Node is evaluated
// at a path, its scope, and yields rows of that path. A clause (Terms, Range, Patterns, Exists) is evaluated at the innermost
// nested path of its field, Some lifts element rows to its scope, and And, Or, Not, Everything and Nothing are set operations on
// the rows of the scope. All these steps are explicit in the tree: the scope of a clause is always that of its field.
package query
