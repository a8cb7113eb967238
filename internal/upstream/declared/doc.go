// Package declared reads the types of fields from the schemas of repositories.
//
// It imports internal/core/datamodel and internal/index/mapping only.
package declared
