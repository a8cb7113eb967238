// Package query owns the one meaning of a filter (CONTRACT section 4): it lowers a checked SQON to a small typed tree which says
// at which rows each question is asked, so that every engine needs to know only what rows a clause matches and how element rows
// are lifted to what holds them. It knows no engine, and may import internal/core, internal/sqon and internal/index/mapping.
//
// # Rows
//
// A document is one row of the path "". Each nested element is a row of its nested path, below the row that holds it. A Node is
// evaluated at a path, its scope, and gives rows of that path. A clause (Terms, Range, Patterns, Exists) is evaluated at the
// innermost nested path of its field, Some brings element rows up to the scope it stands in, and And, Or, Not, Everything and
// Nothing are set operations on the rows of the scope. The tree says each of those steps: a clause never stands at a scope that
// is not its field's own.
package query
