package compare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tutti/http/search"
	"tutti/internal/app/settings"
	"tutti/internal/config"
	"tutti/internal/core"
	indexport "tutti/internal/index"
	"tutti/internal/index/mappingplan"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
)

// CataloguesPlan says how a folder of catalogues differs from the indices that they name, and from what a server serves.
type CataloguesPlan struct {
	Dir        string             `json:"dir"`
	Catalogues []PlannedCatalogue `json:"catalogues"`
	// Difference is set unless every catalogue fits its index and is served as it is.
	Difference bool `json:"difference"`
}

// PlannedCatalogue is a catalogue of the folder, or one of the server that the folder lacks.
type PlannedCatalogue struct {
	ID    string `json:"id"`
	Index string `json:"index,omitempty"`
	// Error is why the catalogue cannot be used, "" if it can.
	Error string `json:"error,omitempty"`
	Hint  string `json:"hint,omitempty"`
	// Fields are the fields whose configuration does not fit the mapping of the index.
	Fields []CatalogueDifference `json:"fields"`
	// Reload says what taking up the folder changes on the server, in words; empty for nothing, and where no server was asked.
	Reload []string `json:"reload,omitempty"`
}

// CatalogueDifference is a field of a catalogue's configuration that its index does not have, or has with another type.
type CatalogueDifference struct {
	Field string `json:"field"`
	// Where is the part of the configuration: extended, facets or table.
	Where string `json:"where"`
	// Configured is the configured type, "" if only the name is configured; Live that of the mapping, "" for no field.
	Configured string `json:"configured,omitempty"`
	Live       string `json:"live,omitempty"`
}

// Served is what a server serves.
type Served interface {
	// IDs returns the ids of all catalogues.
	IDs(ctx context.Context) ([]string, error)
	// Fields returns one catalogue with its fields.
	Fields(ctx context.Context, id string) (core.Catalogue, error)
	// Plan returns the plan of an index that a repository of the server writes to, nil for another index.
	Plan(ctx context.Context, index string) (*mappingplan.Plan, error)
}

// servedMapping returns the mapping of an index that a repository of the server writes to, nil for another index; core.ErrIndexMissing if it
// does not exist.
func servedMapping(ctx context.Context, served Served, index string) (json.RawMessage, error) {
	p, err := served.Plan(ctx, index)
	switch {
	case err != nil || p == nil:
		return nil, err
	case p.State == string(indexport.NameAbsent):
		return nil, core.WrapError(core.CodeIndexBlocked, "the index is missing", core.ErrIndexMissing)
	default:
		return p.Mapping, nil
	}
}

// Mappings reads the mappings of indices.
type Mappings = catalogue.Mappings

// readMapping is the result of reading the mapping of one index.
type readMapping struct {
	raw json.RawMessage
	err error
}

// Mapping returns it.
func (m readMapping) Mapping(context.Context, string) (json.RawMessage, error) { return m.raw, m.err }

// Catalogues returns the plan of a folder. mappings reads the indices; if it is nil, served does, and the fields that it has of a catalogue
// of the same id count as those of an index that it does not read. served may be nil otherwise.
func Catalogues(ctx context.Context, dir string, mappings Mappings, served Served) (CataloguesPlan, error) {
	set, err := definition.Load(dir, definition.Options{Reserved: search.ReservedIDs()})
	if err != nil {
		return CataloguesPlan{Dir: dir}, err
	}
	return planSet(ctx, dir, set, mappings, served)
}

// planSet is Catalogues of the definitions in a folder.
func planSet(ctx context.Context, dir string, set definition.Set, mappings Mappings, served Served) (p CataloguesPlan, err error) {
	p.Dir = dir
	var ids []string
	if served != nil {
		if ids, err = served.IDs(ctx); err != nil {
			return p, err
		}
	}
	for _, d := range set.Definitions {
		one, err := planCatalogue(ctx, d, mappings, served, slices.Contains(ids, d.ID))
		if err != nil {
			return p, err
		}
		ids = slices.DeleteFunc(ids, func(id string) bool { return id == d.ID })
		p.Catalogues = append(p.Catalogues, one)
	}
	for _, id := range ids {
		p.Catalogues = append(p.Catalogues, PlannedCatalogue{ID: id, Fields: []CatalogueDifference{}, Reload: []string{"the catalogue is removed"}})
	}
	p.Difference = slices.ContainsFunc(p.Catalogues, func(c PlannedCatalogue) bool {
		return c.Error != "" || len(c.Fields) > 0 || len(c.Reload) > 0
	})
	return p, nil
}

// Failed returns the number of catalogues that cannot be used.
func (p CataloguesPlan) Failed() int {
	n := 0
	for _, c := range p.Catalogues {
		if c.Error != "" {
			n++
		}
	}
	return n
}

func planCatalogue(ctx context.Context, d definition.Definition, mappings catalogue.Mappings, served Served, isServed bool) (PlannedCatalogue, error) {
	p := PlannedCatalogue{ID: d.ID, Index: d.Index, Fields: []CatalogueDifference{}}
	if d.Err != nil {
		p.Error, p.Hint = d.Err.Message, d.Err.Hint
		if isServed {
			p.Reload = []string{"nothing: the catalogue stays as it was"}
		}
		return p, nil
	}
	var now core.Catalogue
	if isServed {
		var err error
		if now, err = served.Fields(ctx, d.ID); err != nil {
			return p, err
		}
	} else if served != nil {
		p.Reload = []string{"the catalogue is added"}
	}
	if mappings == nil {
		raw, err := servedMapping(ctx, served, d.Index)
		switch {
		case raw != nil, errors.Is(err, core.ErrIndexMissing):
			mappings = readMapping{raw, err}
		case err != nil && !isServed:
			p.Hint = "the mapping of its index could not be read: " + core.DisplayOf(err)
			return p, nil
		}
	}
	live := now.Fields
	if mappings != nil {
		model, problem := catalogue.Load(ctx, d, mappings)
		if problem != nil {
			p.Error = string(problem.Code) + ": " + problem.Message
			return p, nil
		}
		live = model.Catalogue().Fields
		if isServed {
			p.Reload = append(p.Reload, reloads(now, model.Catalogue())...)
		}
	} else if !isServed || now.Problem != nil {
		p.Hint = "its fields are known once it is served"
		return p, nil
	}
	p.Fields = append(p.Fields, unfit(d, live)...)
	return p, nil
}

// maxDescribed is the number of fields with another unit or description that are named.
const maxDescribed = 3

// reloads describes how the fields of a catalogue differ from those that a server has.
func reloads(now core.Catalogue, next *core.Catalogue) []string {
	if now.Problem != nil {
		return []string{"the catalogue becomes available"}
	}
	var found []string
	if now.Description != next.Description {
		found = append(found, "the description changes")
	}
	has := map[string]core.CatalogueField{}
	for _, f := range now.Fields {
		has[f.Name] = f
	}
	var described []string
	for _, f := range next.Fields {
		was, is := has[f.Name]
		delete(has, f.Name)
		f.MultiValued = was.MultiValued
		switch {
		case !is:
			found = append(found, fmt.Sprintf("the field %s is added", f.Name))
		case was.Type != f.Type:
			found = append(found, fmt.Sprintf("the field %s is %s instead of %s", f.Name, f.Type, was.Type))
		case was.DisplayName != f.DisplayName:
			found = append(found, fmt.Sprintf("the field %s has the display name %q instead of %q", f.Name, f.DisplayName, was.DisplayName))
		case was != f:
			described = append(described, f.Name)
		}
	}
	switch n := len(described); {
	case n == 1:
		found = append(found, fmt.Sprintf("the field %s has another unit or description", described[0]))
	case n > 1:
		found = append(found, fmt.Sprintf("%d fields have another unit or description: %s", n, strings.Join(described[:min(n, maxDescribed)], ", ")))
		if n > maxDescribed {
			found[len(found)-1] += ", …"
		}
	}
	for _, f := range now.Fields {
		if _, gone := has[f.Name]; gone {
			found = append(found, fmt.Sprintf("the field %s is removed", f.Name))
		}
	}
	return found
}

// unfit returns the configured fields that do not fit those of an index.
func unfit(d definition.Definition, live []core.CatalogueField) []CatalogueDifference {
	types := make(map[string]string, len(live))
	for _, f := range live {
		types[f.Name] = f.Type
	}
	var found []CatalogueDifference
	check := func(where, name, configured string) {
		of, has := types[name]
		if !has {
			name = strings.ReplaceAll(name, "__", ".")
			of, has = types[name]
		}
		if !has || configured != "" && configured != of {
			found = append(found, CatalogueDifference{Field: name, Where: where, Configured: configured, Live: of})
		}
	}
	for _, e := range d.Extended {
		check("extended", e.FieldName, e.Type)
	}
	for _, f := range gjson.GetBytes(d.Facets, "aggregations.#.fieldName").Array() {
		check("facets", f.String(), "")
	}
	for _, f := range gjson.GetBytes(d.Table, "columns.#.fieldName").Array() {
		check("table", f.String(), "")
	}
	return found
}

// CatalogueFields returns the fields of a catalogue of a configuration, by the mapping that its search engine has. CodeNotFound if there is no
// such catalogue.
func CatalogueFields(ctx context.Context, cfg config.Config, id string) ([]core.CatalogueField, error) {
	set, err := settings.Definitions(cfg)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(set.Definitions, func(d definition.Definition) bool { return d.ID == id })
	if at < 0 {
		return nil, core.NewError(core.CodeNotFound, fmt.Sprintf("the configuration has no catalogue %q", id))
	}
	engine, err := Engine(cfg)
	if err != nil {
		return nil, err
	}
	defer func() { _ = engine.Close() }() // nothing was written
	model, problem := catalogue.Load(ctx, set.Definitions[at], engine)
	if problem != nil {
		return nil, core.NewError(core.CodeUnavailable, "the catalogue "+id+" cannot be used: "+problem.Message)
	}
	return model.Catalogue().Fields, nil
}
