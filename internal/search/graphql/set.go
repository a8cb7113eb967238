package graphql

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/base/spelling"
	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/search/graphql/execute"
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/graphql/request"
	"tutti/internal/search/view"
)

// Sets stores saved sets: the values of one field in the documents that matched a filter at that time.
type Sets interface {
	// Save stores the values that view.Stream returns for r as a set of view.Who. After it has returned, filters can use the set.
	Save(ctx context.Context, view *view.View, r SetRequest) (Set, error)
	// Find returns the matching sets of an owner, and their total number.
	Find(ctx context.Context, owner string, q SetQuery) (sets []Set, total int, err error)
}

// SetRequest is the definition of a set.
type SetRequest struct {
	// Type is the GraphQL type of the documents. UserID is the owner's name as the client sent it, "" for none; it grants no
	// access.
	Type, UserID string
	// SQON is the filter as the client sent it, Filter its translation; nil for all documents.
	SQON   json.RawMessage
	Filter *query.Node
	// Path is the field as the client sent it, Field its definition in the index: _id for the ids of the documents.
	Path  string
	Field query.Field
	// Sort is the order of the members; its last key is unique per document.
	Sort []index.Sort
}

// SetQuery selects the sets to list.
type SetQuery struct {
	// Filter applies to the members of Set by their JSON names. It is parsed, but its field names are not checked.
	Filter sqon.Filter
	// Sort is their order; ties are in the order of creation, newest first.
	Sort          []SetSort
	Offset, First int
	// Members is set if Set.IDs are requested.
	Members bool
}

// SetSort is one sort key.
type SetSort struct {
	// Field is a member of Set by its JSON name, which is not checked.
	Field      string
	Descending bool
	// MissingFirst puts sets without a value first, otherwise they are last.
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

// setsDisabled returns an error if the catalogue has no saved sets.
func (s *resolver) setsDisabled(f *ast.Field) *output.Error {
	if s.service.cfg.Sets != nil && s.served.model.Definition().EnableSets {
		return nil
	}
	return (&output.Error{
		Message: "saved sets are not enabled for this catalogue", Hint: "set enableSets in the configuration of the catalogue", Code: output.CodeInput,
	}).At(f.Position)
}

// typeOfSets is the name of sets in the GraphQL enum of document types, where existing clients expect it.
const typeOfSets = "sets"

// saveSet plans the saving of a set. It is saved when the field is written, because mutations run one after the other.
func (s *resolver) saveSet(ctx context.Context, p *execute.Planner, f *ast.Field) (execute.Value, *output.Error) {
	if bad := s.setsDisabled(f); bad != nil {
		return nil, bad
	}
	args := p.Arguments(f)
	if args.Value("type").String() == typeOfSets {
		args.Reject("type", fmt.Sprintf("must be %s: a set contains documents, not sets", s.served.schema.Document))
	}
	r := SetRequest{
		Type: args.Value("type").String(), UserID: args.Value("userId").String(), SQON: args.Raw("sqon"), Path: args.Value("path").String(),
	}
	r.Filter, r.Field, r.Sort = p.LowerFilter(ctx, args, "sqon"), s.setField(p, args, r.Path), p.Sort(args)
	if bad := args.Err(); bad != nil {
		return nil, bad
	}
	selection := p.Selection(f)
	return func(w *execute.Writer) {
		set, err := s.service.cfg.Sets.Save(ctx, p.View(), r)
		if err != nil {
			w.NullWithError(output.ErrorOf(err).At(f.Position))
			return
		}
		w.Documents.Document(selection, set.json(time.DateOnly), 0, nil) // GraphQL's Date has no time
	}, nil
}

// setField returns the field whose values a set has. Clients write two underscores for a dot.
func (s *resolver) setField(p *execute.Planner, args *request.Arguments, path string) query.Field {
	names := []string{path, strings.ReplaceAll(path, "__", ".")}
	if path == "id" {
		names = append(names, view.IDField)
	}
	for _, name := range names {
		if field, known := p.View().Field(name); known {
			return field
		}
	}
	near := ""
	if name := spelling.Suggest(path, s.served.model.Names()); name != "" {
		near = fmt.Sprintf(", did you mean %q?", name)
	}
	args.Reject("path", "names no field with values"+near)
	return query.Field{}
}

// json returns the set in the form of its GraphQL type: with id besides setId, and createdAt in the given layout.
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
func (s *resolver) sets(ctx context.Context, p *execute.Planner, f *ast.Field) (execute.Value, *output.Error) {
	if bad := s.setsDisabled(f); bad != nil {
		return nil, bad
	}
	return p.Object(f, func(f *ast.Field) (execute.Value, *output.Error) {
		args := p.Arguments(f)
		q := SetQuery{First: args.Int("first", execute.DefaultFirst), Offset: args.Int("offset", 0)}
		if q.First < 0 || q.Offset < 0 || q.First > index.MaxWindow {
			args.Reject("first", "and offset must be between 0 and 10000")
		}
		filter, err := sqon.ParseLenient(args.Raw("filters"))
		if err != nil {
			args.Fail("", output.ErrorOf(err))
		}
		q.Filter = filter
		for _, item := range args.List("sort") {
			if item.Type != gjson.Null {
				q.Sort = append(q.Sort, setSort(item))
			}
		}
		return s.setList(ctx, p, f, q), args.Err()
	}), nil
}

// setSort reads one sort key. Without missing, sets without a value come first only if order is asc.
func setSort(item gjson.Result) SetSort {
	order, missing := item.Get("order").String(), item.Get("missing").String()
	return SetSort{
		Field: item.Get("fieldName").String(), Descending: order == "desc",
		MissingFirst: missing == "first" || missing == "" && order == "asc",
	}
}

func (s *resolver) setList(ctx context.Context, p *execute.Planner, f *ast.Field, q SetQuery) execute.Value {
	selection := p.Selection(f)
	q.Members = selection.Selects("ids")
	return func(w *execute.Writer) {
		owner := p.View().Who().ID
		if owner == "" && !s.service.cfg.AllowAnonymousSets {
			w.Documents.Document(selection, []byte(`{"total":0,"edges":[]}`), 0, nil)
			return
		}
		sets, total, err := s.service.cfg.Sets.Find(ctx, owner, q)
		if err != nil {
			w.NullWithError(output.ErrorOf(err).At(f.Position))
			return
		}
		type edge struct {
			Node json.RawMessage `json:"node"`
		}
		edges := make([]edge, len(sets))
		for i, set := range sets {
			edges[i].Node = set.json(output.TimeLayout)
		}
		w.Documents.Document(selection, toJSON(map[string]any{"total": total, "edges": edges}), 0, nil)
	}
}
