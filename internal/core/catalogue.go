package core

import (
	"cmp"
	"slices"
)

// Catalogue is the current state of a searchable collection: an index with its configuration (CONTRACT sections 2 and 3). It is
// immutable once it is published.
type Catalogue struct {
	// ID names the catalogue in paths; it is unique on a server.
	ID string
	// DocumentType is the type of its documents, "" if not configured. Several catalogues may share one.
	DocumentType string
	// Description is "" when none is configured.
	Description string
	// DataRelease names the release of the data, "" if none is configured.
	DataRelease string
	// Restricted is set if an access rule limits the visible documents.
	Restricted bool
	// DefaultAccess is the access to a catalogue that is not Restricted.
	DefaultAccess DefaultAccess
	// GraphQLIntrospection is set if GraphQL operations may read the schema (__schema and __type).
	GraphQLIntrospection bool
	// Problem is the reason why the catalogue is unavailable, nil if it is available. If it is set, Fields is nil.
	Problem *CatalogueProblem
	// Fields are the fields of the mapping in its order, containers and multi-fields included.
	Fields []CatalogueField
}

// CatalogueField describes one field of a catalogue.
type CatalogueField struct {
	// Name is the dotted path that clients use.
	Name string
	// DisplayName is never empty.
	DisplayName string
	// Type is the search engine's type; for an alias, the type of its target.
	Type string
	// Format is the format of a date as the mapping has it, "" for the default one.
	Format string `json:",omitempty"`
	// Unit and Description are "" when none is configured.
	Unit        string
	Description string
	// MultiValued is set if a sampled document, which callers may not see, holds several values of the field.
	MultiValued bool `json:",omitempty"`
	// Uncounted is why the field has no facet and no sort although its type has, "" if it has them.
	Uncounted string `json:",omitempty"`
	// GraphQL are the field's names in GraphQL, nil where they follow from Name: its parts in documents, and with __ for each dot in aggregations.
	GraphQL *GraphQLNames `json:",omitempty"`
}

// GraphQLNames are the names of a field in the GraphQL schema of its catalogue.
type GraphQLNames struct {
	// Field is the path of names in documents, with dots, "" for a field that is in no document.
	Field string `json:"field,omitempty"`
	// Aggregation is the name in aggregations, "" for a field without.
	Aggregation string `json:"aggregation,omitempty"`
}

// WithoutSamples returns c without what is known from a sample of all documents, for callers from whom some are hidden.
func (c *Catalogue) WithoutSamples() *Catalogue {
	out := *c
	out.Fields = slices.Clone(c.Fields)
	for i := range out.Fields {
		out.Fields[i].MultiValued = false
	}
	return &out
}

// FieldValues describes the values of one field in the documents that a caller sees, as members of the field's introspection.
type FieldValues struct {
	// Values are the most frequent values of a keyword or a boolean, the most frequent first; nil for other fields.
	Values []FieldValue `json:"values,omitzero"`
	// Min and Max are the bounds of a number, float64, or of a date, a string in ISO 8601; nil for other fields and without a value.
	Min any `json:"min,omitempty"`
	Max any `json:"max,omitempty"`
	// Note says why something is left out, "" if nothing is.
	Note string `json:"valuesNote,omitempty"`
}

// FieldValue is a value, string or bool, with the number of documents that have it.
type FieldValue struct {
	Value any   `json:"value"`
	Count int64 `json:"count"`
}

// CatalogueProblem is the reason why a catalogue failed. Message is one short sentence, safe to display.
type CatalogueProblem struct {
	Code    CatalogueCode `json:"code"`
	Message string        `json:"message"`
}

// CatalogueCode classifies why a catalogue failed.
type CatalogueCode string

// Codes of a CatalogueProblem (CONTRACT section 2).
const (
	CatalogueIndexNotFound    CatalogueCode = "index_not_found"
	CataloguePermissionDenied CatalogueCode = "permission_denied"
	CatalogueConnectionError  CatalogueCode = "connection_error"
	CatalogueMappingFetch     CatalogueCode = "mapping_fetch_error"
	CatalogueSchemaBuild      CatalogueCode = "schema_build_error"
	CatalogueUnknown          CatalogueCode = "unknown_error"
)

// CatalogueStatus aggregates the catalogues of a server.
type CatalogueStatus string

// Values of CatalogueStatus: healthy if none failed or there are none; degraded if some failed; unhealthy if all failed.
const (
	CataloguesHealthy   CatalogueStatus = "healthy"
	CataloguesDegraded  CatalogueStatus = "degraded"
	CataloguesUnhealthy CatalogueStatus = "unhealthy"
)

// CatalogueSet is a snapshot of all catalogues of a server. It is immutable once it is published.
type CatalogueSet struct {
	// Catalogues are sorted by their unique IDs.
	Catalogues []*Catalogue
}

// Status returns the aggregate status.
func (s *CatalogueSet) Status() CatalogueStatus {
	failed := 0
	for _, c := range s.Catalogues {
		if c.Problem != nil {
			failed++
		}
	}
	switch {
	case failed == 0:
		return CataloguesHealthy
	case failed < len(s.Catalogues):
		return CataloguesDegraded
	default:
		return CataloguesUnhealthy
	}
}

// ByID returns the catalogue with an ID, nil if there is none.
func (s *CatalogueSet) ByID(id string) *Catalogue {
	i, found := slices.BinarySearchFunc(s.Catalogues, id, func(c *Catalogue, id string) int { return cmp.Compare(c.ID, id) })
	if !found {
		return nil
	}
	return s.Catalogues[i]
}

// ByDocumentType returns the catalogues of a document type, sorted by ID.
func (s *CatalogueSet) ByDocumentType(documentType string) []*Catalogue {
	var of []*Catalogue
	for _, c := range s.Catalogues {
		if documentType != "" && c.DocumentType == documentType {
			of = append(of, c)
		}
	}
	return of
}
