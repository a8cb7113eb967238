// Package document creates documents from Song's analyses: one for each analysis, or one for each of its files. It makes no
// network calls.
//
// It imports internal/core and internal/base/jsontext only.
package document
