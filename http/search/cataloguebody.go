package search

import (
	"bytes"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/filter/sqon"
)

// Values of summaryBody.Mode and catalogueEntry.Status.
const (
	modeSingle      = "single"
	modeMultiple    = "multiple"
	statusAvailable = "available"
	statusFailed    = "failed"
)

// summaryBody is the body of GET /introspection (CONTRACT section 2).
type summaryBody struct {
	CatalogCount   int                  `json:"catalogCount"`
	Mode           string               `json:"mode"`
	Status         core.CatalogueStatus `json:"status"`
	SQONSchemaPath string               `json:"sqonSchemaPath"`
	// Catalogs maps catalogue ids to values of type catalogueEntry.
	Catalogs members `json:"catalogs"`
}

type catalogueEntry struct {
	Description  string                 `json:"description,omitempty"`
	DocumentType string                 `json:"documentType"`
	Paths        cataloguePaths         `json:"paths"`
	Status       string                 `json:"status"`
	Error        *core.CatalogueProblem `json:"error,omitempty"`
}

type cataloguePaths struct {
	GraphQL       string `json:"graphql"`
	Introspection string `json:"introspection"`
	Fields        string `json:"fields,omitempty"`
}

func newSummaryBody(set *core.CatalogueSet, basePath string) summaryBody {
	body := summaryBody{
		CatalogCount: len(set.Catalogues), Mode: modeMultiple, Status: set.Status(), SQONSchemaPath: basePath + pathSQON,
	}
	fields := ""
	if onlyOf(set) != nil {
		body.Mode, fields = modeSingle, basePath+pathFields
	}
	for _, c := range set.Catalogues {
		entry := catalogueEntry{
			Description: c.Description, DocumentType: c.DocumentType, Status: statusAvailable, Error: c.Problem,
			Paths: cataloguePaths{GraphQL: basePath + graphqlPath(c), Introspection: basePath + introspectionPath(c), Fields: fields},
		}
		if c.Problem != nil {
			entry.Status = statusFailed
		}
		body.Catalogs = append(body.Catalogs, member{c.ID, entry})
	}
	return body
}

// failedBody describes a failed catalogue. Details is empty in the response of GET /introspection/{id} itself.
type failedBody struct {
	CatalogueID  string                 `json:"catalogueId"`
	Description  string                 `json:"description,omitempty"`
	DocumentType string                 `json:"documentType"`
	Status       string                 `json:"status"`
	Error        *core.CatalogueProblem `json:"error"`
	Details      string                 `json:"details,omitempty"`
}

func newFailedBody(c *core.Catalogue) failedBody {
	return failedBody{
		CatalogueID: c.ID, Description: c.Description, DocumentType: c.DocumentType, Status: statusFailed, Error: c.Problem,
	}
}

// detailHead and detailTail are the members of a detail before generatedAt and after meta.
type detailHead struct {
	CatalogID    string `json:"catalogId"`
	Description  string `json:"description,omitempty"`
	DocumentType string `json:"documentType"`
	DataRelease  string `json:"dataRelease,omitempty"`
}

type detailTail struct {
	// Operators maps field types to operator names, Fields maps field names to values of type fieldBody.
	Operators members `json:"operators"`
	Fields    members `json:"fields"`
}

type fieldBody struct {
	DisplayName string             `json:"displayName"`
	Type        string             `json:"type"`
	Unit        string             `json:"unit,omitempty"`
	Description string             `json:"description,omitempty"`
	MultiValued bool               `json:"multiValued,omitempty"`
	GraphQL     *core.GraphQLNames `json:"graphql,omitempty"`
	core.FieldValues
}

// detailHeadOf returns the encoded detail up to the value of generatedAt.
func detailHeadOf(c *core.Catalogue) []byte {
	head := rendered(detailHead{CatalogID: c.ID, Description: c.Description, DocumentType: c.DocumentType, DataRelease: c.DataRelease})
	return append(bytes.TrimSuffix(head, []byte("}")), `,"generatedAt":"`...)
}

// detailTailOf returns the encoded detail from operators to the end, with values by field name; nil for none.
func detailTailOf(c *core.Catalogue, values map[string]core.FieldValues) []byte {
	var t detailTail
	seen := map[string]bool{}
	for _, f := range c.Fields {
		if !seen[f.Type] {
			seen[f.Type] = true
			t.Operators = append(t.Operators, member{f.Type, sqon.Operators(f.Type)})
		}
		t.Fields = append(t.Fields, member{f.Name, fieldBody{
			DisplayName: f.DisplayName, Type: f.Type, Unit: f.Unit, Description: f.Description, MultiValued: f.MultiValued,
			GraphQL: f.GraphQL, FieldValues: values[f.Name],
		}})
	}
	return bytes.TrimPrefix(rendered(t), []byte("{"))
}

// members is a JSON object that keeps the order of its members and allows any names.
type members []member

type member struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (m members) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, one := range m {
		if i > 0 {
			b.WriteByte(',')
		}
		for _, part := range []any{one.name, one.value} {
			if err := api.EncodeJSON(&b, part); err != nil {
				return nil, err
			}
			b.Truncate(b.Len() - 1) // the end of the line
			b.WriteByte(':')
		}
		b.Truncate(b.Len() - 1)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// rendered returns a body of this file as JSON. Encoding cannot fail: the bodies hold only strings and numbers.
func rendered(body any) []byte {
	var b bytes.Buffer
	_ = api.EncodeJSON(&b, body)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
