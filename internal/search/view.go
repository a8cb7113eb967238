package search

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"tutti/internal/catalogue"
	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/query"
	"tutti/internal/sqon"
)

// View is a catalogue as one caller sees it. It may be used concurrently, and for one request of that caller.
type View struct {
	service *Service
	model   *catalogue.Model
	who     core.Principal
	fields  fields
	// granted is what the caller may see; nil for everything.
	granted *query.Node
	// usedSets is set when one of the caller's saved sets was asked for.
	usedSets atomic.Bool
}

// Model returns the catalogue.
func (v *View) Model() *catalogue.Model { return v.model }

// Who returns the caller.
func (v *View) Who() core.Principal { return v.who }

// Parse reads and checks a SQON of a client (sqon.ParseLenient), which may name the id of documents as IDField. Errors are of CodeInvalid with Violations that point into raw.
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

// Lower returns the tree of a filter from Parse, with the members of the caller's saved sets.
func (v *View) Lower(ctx context.Context, f sqon.Filter) (*query.Node, error) {
	return query.Lower(ctx, f, filterable{v.fields}, v.members)
}

// Facet returns the filters of a facet, for documents and for elements (query.Facet).
func (v *View) Facet(ctx context.Context, f sqon.Filter, name string, themselves bool) (documents, elements *query.Node, err error) {
	return query.Facet(ctx, f, name, themselves, filterable{v.fields}, v.members)
}

// members returns the members of a set that is the caller's. Nobody owns a set.
func (v *View) members(ctx context.Context, id string) ([]string, error) {
	v.usedSets.Store(true)
	if v.service.cfg.Sets == nil {
		return nil, unknownSet(id)
	}
	return v.service.cfg.Sets.Members(ctx, v.who.ID, id)
}

// UsedSets reports whether a filter that was lowered named saved sets: then it is of this caller and this moment alone.
func (v *View) UsedSets() bool { return v.usedSets.Load() }

func unknownSet(id string) error {
	if len(id) > maxShown {
		id = id[:maxShown] + "…"
	}
	return core.NewError(core.CodeNotFound, "there is no saved set "+id+", or it is not yours, or it has expired")
}

// maxShown is how much of a name that is unknown is told.
const maxShown = 64

// Field returns the field of a name as the index knows it; false when there is none, and for containers.
func (v *View) Field(name string) (query.Field, bool) { return v.fields.Lookup(name) }

// Identity returns the order that tells any two documents apart, for the end of each Sort.
func (v *View) Identity() index.Sort {
	if path := v.service.cfg.Identity(v.alias()); path != "" {
		if f, ok := mappingFields(v.model).Lookup(path); ok && f.Type == "keyword" && f.Row() == "" {
			return index.Sort{Field: f}
		}
	}
	return index.Sort{Field: query.Field{Path: "_id", Type: "keyword"}}
}
