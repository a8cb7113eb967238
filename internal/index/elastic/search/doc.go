// Package search evaluates searches: it plans them as few requests as possible, splits those whose responses are too large, sorts by ids,
// and encrypts cursors.
//
// Its tests are in internal/index/elastic.
package search
