package definition

import (
	"encoding/json"

	"tutti/internal/core"
	"tutti/internal/sqon"
)

// Definition is one catalogue as its configuration says, or as tutti makes it where there is none.
type Definition struct {
	// Folder is the folder's name, "" for one that tutti made.
	Folder string
	// ID is unique among the definitions of a Set. It is the folder's catalogId, else its name; the top folder's is its
	// documentType when it is called config or configs. One whose own id is not known or cannot be had has a Fault, and is
	// listed under its folder's name, with -2, -3 and so on behind it where that is taken.
	ID string
	// DocumentType is as it was written, which need not be a name in GraphQL; "" when it is not known.
	DocumentType string
	// Index is the index or alias that is searched.
	Index       string
	Description string
	// NestingPrefix is the dotted path of the object that all fields are below, left out of their names; "" for none.
	NestingPrefix string
	// GraphQLIntrospection reports whether __schema and __type are answered.
	GraphQLIntrospection bool
	DisableDownloads     bool
	DisableFilters       bool
	EnableSets           bool
	// MaxAliases and MaxDepth bound a GraphQL query; MaxDepth 0 means the default.
	MaxAliases int
	MaxDepth   int
	Extended   []ExtendedField
	// The following are kept as they were written, but for unknown keys and old names of keys, and checked for their form;
	// nil when absent.
	Facets    json.RawMessage
	Table     json.RawMessage
	Matchbox  json.RawMessage
	Downloads json.RawMessage
	Charts    json.RawMessage
	Network   json.RawMessage
	// Access narrows what is seen; nil when those whom DefaultAccess allows see everything, which it is only where nothing in the
	// folder looks like a rule. Beside a Fault it may be a rule without a field, which nobody passes.
	Access *AccessRule
	// DefaultAccess says who reads a catalogue whose Access is nil; its zero value where that is not nil.
	DefaultAccess core.DefaultAccess
	// Err says why the catalogue cannot be built, with the file, the pointer and the mend; nil when it can. It is the first
	// fault, and its Violations are all of them, 50 at most.
	Err *core.Error
	// Warnings are what should be known but stops nothing, each with its file and pointer.
	Warnings []string
}

// ExtendedField is what a configuration says of one field beyond its mapping.
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

// AccessRule is an access.json: a caller sees the documents whose Field has a value that one of its scopes names, and
// those that Public matches (CONTRACT section 6).
type AccessRule struct {
	// Field is a path of the index's mapping, whatever the nesting prefix.
	Field string
	// Scope is the template of the scope that grants a value, which stands for {value} in it.
	Scope string
	// Public is what everybody sees; nil means nothing.
	Public *sqon.Filter
}

// Set is everything that a folder says.
type Set struct {
	// Definitions are in the order of their ids.
	Definitions []Definition
	// Warnings are about the folder as a whole; those of one catalogue are its own.
	Warnings []string
}
