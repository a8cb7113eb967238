package definition

import (
	"encoding/json"

	"tutti/internal/core"
	"tutti/internal/filter/sqon"
)

// Definition is the configuration of one catalogue, or the default if there is none.
type Definition struct {
	// Folder is the folder's name, "" for a default definition.
	Folder string
	// ID is unique among the definitions of a Set. It is the configured catalogId, or else the folder's name. The default of a top
	// folder called config or configs is its documentType. If the ID is unknown or taken, the definition has an Err, and its ID is
	// the folder's name, with the suffix -2, -3 and so on if that is taken too.
	ID string
	// DocumentType is as configured, and may not be a valid GraphQL name; "" if unknown.
	DocumentType string
	// Index is the index or alias to search.
	Index       string
	Description string
	// DataRelease names the release of the data; "" if none is configured.
	DataRelease string
	// NestingPrefix is the dotted path of the object that contains all fields, omitted from their names; "" for none.
	NestingPrefix string
	// GraphQLIntrospection reports whether __schema and __type are allowed.
	GraphQLIntrospection bool
	DisableDownloads     bool
	DisableFilters       bool
	EnableSets           bool
	// MaxAliases and MaxDepth limit a GraphQL query; MaxDepth 0 is the default.
	MaxAliases int
	MaxDepth   int
	Extended   []ExtendedField
	// The following are validated JSON as written, except that unknown keys are removed and old keys have their current names; nil
	// if absent.
	Facets    json.RawMessage
	Table     json.RawMessage
	Matchbox  json.RawMessage
	Downloads json.RawMessage
	Charts    json.RawMessage
	Network   json.RawMessage
	// Access restricts the visible documents; nil if callers that DefaultAccess allows see everything. It is nil only if nothing
	// in the folder looks like a rule. With an Err it may be a rule without a field, which denies everyone.
	Access *AccessRule
	// DefaultAccess is the access to a catalogue whose Access is nil; the zero value otherwise.
	DefaultAccess core.DefaultAccess
	// Err is why the catalogue cannot be built, with the file, the pointer and a hint; nil if it can. It is the first violation,
	// and its Violations are all of them, 50 at most.
	Err *core.Error
	// Warnings are non-fatal problems, each with its file and pointer.
	Warnings []string
}

// ExtendedField is the additional configuration of one field.
type ExtendedField struct {
	FieldName          string                     `json:"fieldName"`
	DisplayName        string                     `json:"displayName,omitempty"`
	DisplayType        string                     `json:"displayType,omitempty"`
	DisplayValues      map[string]json.RawMessage `json:"displayValues,omitempty"`
	IsActive           *bool                      `json:"isActive,omitempty"`
	IsArray            *bool                      `json:"isArray,omitempty"`
	PrimaryKey         *bool                      `json:"primaryKey,omitempty"`
	QuickSearchEnabled *bool                      `json:"quickSearchEnabled,omitempty"`
	RangeStep          *float64                   `json:"rangeStep,omitempty"`
	Unit               string                     `json:"unit,omitempty"`
	Description        string                     `json:"description,omitempty"`
	Type               string                     `json:"type,omitempty"`
}

// AccessRule is an access.json: a caller sees the documents whose Field has a value that one of its scopes grants, and those that
// Public matches (CONTRACT section 6).
type AccessRule struct {
	// Field is a path in the index's mapping, including the nesting prefix.
	Field string
	// Scope is the template of the scope that grants a value, with {value} in its place.
	Scope string
	// Public matches the documents that everyone sees; nil for none.
	Public *sqon.Filter
}

// Set is the content of a folder of catalogues.
type Set struct {
	// Definitions are sorted by ID.
	Definitions []Definition
	// Warnings are about the folder as a whole; those of one catalogue are in its Definition.
	Warnings []string
}
