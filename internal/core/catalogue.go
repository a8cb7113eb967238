package core

import (
	"cmp"
	"slices"
)

// Catalogue is a searchable collection as it is now: an index with what its configuration says of it (CONTRACT sections 2
// and 3). One that has been handed out is never changed.
type Catalogue struct {
	// ID names the catalogue in paths; it is unique on a server.
	ID string
	// DocumentType is what a document of it is called, "" where the configuration does not tell. Several may share one.
	DocumentType string
	// Description is "" when none is configured.
	Description string
	// Restricted tells that an access rule narrows what is seen of it.
	Restricted bool
	// DefaultAccess says who reads a catalogue that is not Restricted.
	DefaultAccess DefaultAccess
	// Problem says why the catalogue cannot be used now; nil when it can. Fields is nil beside one.
	Problem *CatalogueProblem
	// Fields are those of the mapping by name, in its order, containers and multi-fields included.
	Fields []CatalogueField
}

// CatalogueField describes one field of a catalogue.
type CatalogueField struct {
	// Name is the dotted path that clients use.
	Name string
	// DisplayName is never empty.
	DisplayName string
	// Type is the search engine's, that of the target for an alias.
	Type string
	// Unit and Description are "" when none is configured.
	Unit        string
	Description string
	// MultiValued is set when documents of the index were seen that hold several values of the field.
	MultiValued bool `json:",omitempty"`
}

// CatalogueProblem says why a catalogue failed. Message is one short sentence, safe to display.
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

// Values of CatalogueStatus: healthy when none failed, also without any; degraded when some failed and some did not;
// unhealthy when there are some and all failed.
const (
	CataloguesHealthy   CatalogueStatus = "healthy"
	CataloguesDegraded  CatalogueStatus = "degraded"
	CataloguesUnhealthy CatalogueStatus = "unhealthy"
)

// CatalogueSet is all catalogues of a server at one moment. One that has been handed out is never changed.
type CatalogueSet struct {
	// Catalogues are in the order of their ids, which are unique.
	Catalogues []*Catalogue
}

// Status returns the aggregate.
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

// ByID returns the catalogue of an id, nil when there is none.
func (s *CatalogueSet) ByID(id string) *Catalogue {
	i, found := slices.BinarySearchFunc(s.Catalogues, id, func(c *Catalogue, id string) int { return cmp.Compare(c.ID, id) })
	if !found {
		return nil
	}
	return s.Catalogues[i]
}

// ByDocumentType returns the catalogues of a document type, in the order of their ids.
func (s *CatalogueSet) ByDocumentType(documentType string) []*Catalogue {
	var of []*Catalogue
	for _, c := range s.Catalogues {
		if documentType != "" && c.DocumentType == documentType {
			of = append(of, c)
		}
	}
	return of
}
