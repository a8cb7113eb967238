// Package document makes documents of Song's analyses: one of each analysis, or one of each of its files. It makes no calls.
//
// It imports internal/core and internal/jsontext only.
package document
