package graph

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/query"
	"tutti/internal/search"
	"tutti/internal/sqon"
)

// Sets keeps saved sets: the values of one field in the documents that matched a filter when they were saved.
type Sets interface {
	// Save keeps the set of what view.Stream returns for r, as that of view.Who. It is seen by Members when it returns.
	Save(ctx context.Context, view *search.View, r SetRequest) (Set, error)
	// Find returns the sets of an owner, and how many there are of all that match.
	Find(ctx context.Context, owner string, q SetQuery) (sets []Set, total int, err error)
}

// SetRequest says what is saved.
type SetRequest struct {
	// Type is the name of the documents in GraphQL, UserID what the client calls the owner, "" when it does not: it grants
	// nothing.
	Type, UserID string
	// SQON is the filter as the client sent it, Filter the same as the index is asked; nil for all documents.
	SQON   json.RawMessage
	Filter *query.Node
	// Path is the field as the client sent it, Field the same as the index knows it: _id for the ids of the documents.
	Path  string
	Field query.Field
	// Sort is the order of the members; it ends with what tells any two documents apart.
	Sort []index.Sort
}

// SetQuery says which sets are listed.
type SetQuery struct {
	// Filter is about the members of Set by their names in JSON. It was parsed, and not checked against any fields.
	Filter sqon.Filter
	// Sort is their order; what is equal by all of it is in that of their times, the last saved first.
	Sort          []SetSort
	Offset, First int
	// Members tells that Set.IDs are asked for.
	Members bool
}

// SetSort is one key of an order of sets.
type SetSort struct {
	// Field is a member of Set by its name in JSON, which is not checked.
	Field      string
	Descending bool
	// MissingFirst puts sets without a value first, else they are last.
	MissingFirst bool
}

// Set is a saved set.
type Set struct {
	ID        string          `json:"setId"`
	CreatedAt time.Time       `json:"createdAt"`
	IDs       []string        `json:"ids"`
	Path      string          `json:"path"`
	Size      int             `json:"size"`
	SQON      json.RawMessage `json:"sqon"`
	Type      string          `json:"type"`
	UserID    string          `json:"userId"`
}

// setsDisabled is the fault of asking for saved sets where there are none.
func (x *execution) setsDisabled(f *ast.Field) *gqlError {
	if x.cfg.Sets != nil && x.served.model.Definition().EnableSets {
		return nil
	}
	return (&gqlError{
		message: "saved sets are not enabled for this catalogue", hint: "set enableSets in the configuration of the catalogue", code: codeInput,
	}).at(f.Position)
}

// typeOfSets is the name that sets have in GraphQL's type of documents, where existing clients know it.
const typeOfSets = "sets"

// saveSet plans the saving of a set, which happens when its place in the answer is written: mutations are done one by one.
func (x *execution) saveSet(ctx context.Context, f *ast.Field) (writeFunc, *gqlError) {
	if bad := x.setsDisabled(f); bad != nil {
		return nil, bad
	}
	args := x.args(f)
	if args.value("type").String() == typeOfSets {
		return nil, args.invalid("type", fmt.Sprintf("must be %s: sets are made of documents, and not of sets", x.served.schema.Document))
	}
	r := SetRequest{
		Type: args.value("type").String(), UserID: args.value("userId").String(), SQON: args.raw("sqon"), Path: args.value("path").String(),
	}
	var bad *gqlError
	if r.Filter, bad = x.lowerFilter(ctx, f, "sqon"); bad != nil {
		return nil, bad
	}
	if r.Field, bad = x.setField(args, r.Path); bad != nil {
		return nil, bad
	}
	if r.Sort, bad = x.sort(args); bad != nil {
		return nil, bad
	}
	selection := x.plainSelectionSet(f.Definition.Type.Name(), f.SelectionSet)
	return func(w *responseWriter) bool {
		set, err := x.cfg.Sets.Save(ctx, x.view, r)
		if err != nil {
			return w.nullWithError(errorOf(err).at(f.Position))
		}
		return w.document(selection, set.json(time.DateOnly), 0, nil) // GraphQL's Date has no time
	}, nil
}

// setField returns the field whose values a set has. Clients write two underscores for a dot.
func (x *execution) setField(args arguments, path string) (query.Field, *gqlError) {
	if path == "_id" || path == "id" {
		if field, own := x.view.Field(path); own {
			return field, nil
		}
		return query.Field{Path: "_id", Type: "keyword"}, nil
	}
	for _, name := range []string{path, strings.ReplaceAll(path, "__", ".")} {
		if field, known := x.view.Field(name); known {
			return field, nil
		}
	}
	near := ""
	if meant := core.Meant(path, x.served.model.Names()); meant != "" {
		near = fmt.Sprintf(", did you mean %q?", meant)
	}
	return query.Field{}, args.invalid("path", fmt.Sprintf("names no field with values%s", near))
}

// timeLayout is how times are written.
const timeLayout = "2006-01-02T15:04:05.000Z"

// json returns the set as GraphQL's types have it: an object, with id beside setId, and its time in a layout.
func (s Set) json(layout string) json.RawMessage {
	if s.IDs == nil {
		s.IDs = []string{}
	}
	if len(s.SQON) == 0 {
		s.SQON = json.RawMessage("null")
	}
	return toJSON(struct {
		Set
		NodeID    string `json:"id"`
		CreatedAt string `json:"createdAt"`
	}{s, s.ID, s.CreatedAt.UTC().Format(layout)})
}

// sets plans the list of the caller's sets.
func (x *execution) sets(ctx context.Context, f *ast.Field) (writeFunc, *gqlError) {
	if bad := x.setsDisabled(f); bad != nil {
		return nil, bad
	}
	return x.objectOf(f, func(f *ast.Field) (writeFunc, *gqlError) {
		args := x.args(f)
		var q SetQuery
		var bad *gqlError
		if q.First, bad = args.int("first", defaultFirst); bad != nil {
			return nil, bad
		}
		if q.Offset, bad = args.int("offset", 0); bad != nil {
			return nil, bad
		}
		if q.First < 0 || q.Offset < 0 || q.First > index.MaxWindow {
			return nil, args.invalid("first", "and offset are not between 0 and 10000")
		}
		filter, err := sqon.ParseLenient(args.raw("filters"))
		if err != nil {
			return nil, errorOf(err).at(f.Position)
		}
		q.Filter = filter
		for _, item := range args.list("sort") {
			if item.Type != gjson.Null {
				q.Sort = append(q.Sort, setSort(item))
			}
		}
		return x.setList(ctx, f, q), nil
	}), nil
}

// setSort reads one key of an order as sortKey does.
func setSort(item gjson.Result) SetSort {
	order, missing := item.Get("order").String(), item.Get("missing").String()
	return SetSort{
		Field: item.Get("fieldName").String(), Descending: order == "desc",
		MissingFirst: missing == "first" || missing == "" && order == "asc",
	}
}

func (x *execution) setList(ctx context.Context, f *ast.Field, q SetQuery) writeFunc {
	selection := x.plainSelectionSet(f.Definition.Type.Name(), f.SelectionSet)
	q.Members = selection.selects("ids")
	return func(w *responseWriter) bool {
		owner := x.view.Who().ID
		if owner == "" && !x.cfg.AllowAnonymousSets {
			return w.document(selection, []byte(`{"total":0,"edges":[]}`), 0, nil)
		}
		sets, total, err := x.cfg.Sets.Find(ctx, owner, q)
		if err != nil {
			return w.nullWithError(errorOf(err).at(f.Position))
		}
		type edge struct {
			Node json.RawMessage `json:"node"`
		}
		edges := make([]edge, len(sets))
		for i, s := range sets {
			edges[i].Node = s.json(timeLayout)
		}
		return w.document(selection, toJSON(map[string]any{"total": total, "edges": edges}), 0, nil)
	}
}
