package view

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/search/catalogue"
)

// View is a catalogue as one caller may see it. It is safe for concurrent use, for one request of that caller.
type View struct {
	service *Service
	model   *catalogue.Model
	who     core.Principal
	fields  fields
	// granted is the caller's access filter; nil for all documents.
	granted *query.Node
	// usedSets is set if a filter used one of the caller's saved sets.
	usedSets atomic.Bool
}

// Model returns the catalogue.
func (v *View) Model() *catalogue.Model { return v.model }

// Who returns the caller.
func (v *View) Who() core.Principal { return v.who }

// Parse parses and validates a client's SQON (sqon.ParseLenient), which may use IDField. Errors are of CodeInvalid with
// Violations that point into raw.
func (v *View) Parse(raw json.RawMessage) (sqon.Filter, error) {
	f, err := sqon.ParseLenient(raw)
	if err != nil {
		return sqon.Filter{}, err
	}
	if err := f.Check(filterable{v.fields}); err != nil {
		return sqon.Filter{}, err
	}
	return f, nil
}

// Lower translates a filter from Parse into an index query, with the members of the caller's saved sets.
func (v *View) Lower(ctx context.Context, f sqon.Filter) (*query.Node, error) {
	return query.Lower(ctx, f, filterable{v.fields}, v.members)
}

// Facet returns the filters of a facet, for documents and for nested elements (query.Facet).
func (v *View) Facet(ctx context.Context, f sqon.Filter, name string, themselves bool) (documents, elements *query.Node, err error) {
	return query.Facet(ctx, f, name, themselves, filterable{v.fields}, v.members)
}

// members returns the members of one of the caller's sets. Anonymous callers have no sets.
func (v *View) members(ctx context.Context, id string) ([]string, error) {
	v.usedSets.Store(true)
	if v.service.cfg.Sets == nil {
		return nil, unknownSet(id)
	}
	return v.service.cfg.Sets.Members(ctx, v.who.ID, id)
}

// UsedSets reports whether a translated filter used saved sets: then it is valid only for this caller and only now.
func (v *View) UsedSets() bool { return v.usedSets.Load() }

func unknownSet(id string) error {
	if len(id) > maxShown {
		id = id[:maxShown] + "…"
	}
	return core.NewError(core.CodeNotFound, "there is no saved set "+id+", or it is not yours, or it has expired")
}

// maxShown is the maximum length of an unknown name in a message, in bytes.
const maxShown = 64

// Field returns the index field of a name; false for unknown names and containers.
func (v *View) Field(name string) (query.Field, bool) { return v.fields.Lookup(name) }

// Identity returns the sort key that is unique per document, for the end of each Sort.
func (v *View) Identity() index.Sort {
	if path := v.service.cfg.Identity(v.alias()); path != "" {
		if f, ok := mappingFields(v.model).Lookup(path); ok && f.Type == "keyword" && f.Row() == "" {
			return index.Sort{Field: f}
		}
	}
	return index.Sort{Field: query.Field{Path: "_id", Type: "keyword"}}
}
