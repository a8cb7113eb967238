// Package datamodel has the nouns of the metadata that providers submit, in Song's terms: a Study, an Analysis with its AnalysisState and
// files, an Entity, which is a file as Score reads it, and an AnalysisType, which is a version of the schema of analyses. It owns their
// states and what an import or a change of a file returns; internal/metadata stores analyses, schemas checks them.
//
// A member that clients may search by is added to IDSearch, EntityQuery or AnalysisTypeQuery. It imports the standard library only.
package datamodel
