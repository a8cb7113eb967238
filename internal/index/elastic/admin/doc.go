// Package admin creates aliases with their indices and mappings, and reports on them: mapping, identity, checkpoint, and whether the cluster
// answers.
//
// Its tests are in internal/index/elastic.
package admin
