package savedfilter

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"tutti/internal/app/check"
	"tutti/internal/base/jsontext"
	"tutti/internal/filter/sqon"
)

// maxSavedTokens bounds the size of a saved request.
const maxSavedTokens = 100_000

// request adds what changes of a request of GraphQL: of its filters, and of the arguments whose meaning changes.
func (m *moved) request(query string, variables gjson.Result) {
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: query}, maxSavedTokens)
	if err != nil {
		m.add("/query", check.StatusFail, "it is not GraphQL: "+err.Error(), "")
		return
	}
	variables.ForEach(func(name, value gjson.Result) bool {
		if value.Get("op").Exists() {
			m.filter(jsontext.Pointer("/variables", name.Str), json.RawMessage(value.Raw))
		}
		return true
	})
	r := savedRequest{moved: m, doc: doc, variables: variables}
	for _, operation := range doc.Operations {
		r.selected(operation.SelectionSet, nil)
	}
	for _, fragment := range doc.Fragments {
		r.selected(fragment.SelectionSet, nil)
	}
}

// savedRequest is the walk of a request.
type savedRequest struct {
	*moved
	doc       *ast.QueryDocument
	variables gjson.Result
}

// selected adds what changes of the fields of a selection set. above are the names of the fields above, fragments aside.
func (r savedRequest) selected(set ast.SelectionSet, above []string) {
	for _, one := range set {
		switch s := one.(type) {
		case *ast.Field:
			r.field(s, above)
			r.selected(s.SelectionSet, append(slices.Clip(above), s.Name))
		case *ast.InlineFragment:
			r.selected(s.SelectionSet, above)
		case *ast.FragmentSpread: // the fragment is walked by itself
		}
	}
}

func (r savedRequest) field(f *ast.Field, above []string) {
	at := "/query"
	if f.Position != nil {
		at += ", line " + strconv.Itoa(f.Position.Line)
	}
	for _, a := range f.Arguments {
		if value := r.value(a.Value); a.Value.Kind == ast.ObjectValue && value.Get("op").Exists() {
			r.filter(at+", "+a.Name, json.RawMessage(value.Raw))
		}
	}
	facet := ""
	if len(above) > 0 {
		facet = strings.ReplaceAll(above[len(above)-1], "__", ".")
	}
	switch f.Name {
	case "hits":
		r.cursor(at, f)
	case "histogram":
		r.add(at, r.nested(&sqon.Node{Fields: []string{facet}}), "histogram of "+facet+": if the field is nested, it counts documents; Arranger counts elements", "")
	case "top_hits":
		if size := r.argument(f, "size"); size.Int() > 1 {
			r.add(at, check.StatusFail, fmt.Sprintf("top_hits of %s with size %d is a list of documents; Arranger returns one document", facet, size.Int()), "read the first of the list, or ask for size: 1")
		}
	default:
	}
}

// cursor adds what is to be done about a searchAfter.
func (r savedRequest) cursor(at string, f *ast.Field) {
	after := r.argument(f, "searchAfter")
	if after.Type == gjson.Null {
		return
	}
	keys := len(r.argument(f, "sort").Array())
	if given := len(after.Array()); given <= keys {
		r.add(at, check.StatusFail, fmt.Sprintf("searchAfter has %d values for %d sort keys: tutti refuses one without the tie-breaker, unless the keys identify the document", given, keys),
			"send the searchAfter of an edge of the page before")
		return
	}
	r.add(at, check.StatusWarn, "searchAfter must be that of an edge in the same order: one that the client has made, or that Arranger has returned, is not", "begin with the first page")
}

// argument returns the value of an argument, with variables.
func (r savedRequest) argument(f *ast.Field, name string) gjson.Result {
	a := f.Arguments.ForName(name)
	if a == nil {
		return gjson.Result{}
	}
	return r.value(a.Value)
}

// value returns a value as JSON, with variables; null for one that is not given.
func (r savedRequest) value(v *ast.Value) gjson.Result {
	if v.Kind == ast.Variable {
		return r.variables.Get(gjson.Escape(v.Raw))
	}
	return gjson.Parse(r.text(v))
}

// text returns a value as JSON.
func (r savedRequest) text(v *ast.Value) string {
	var parts []string
	switch v.Kind {
	case ast.Variable:
		if raw := r.value(v).Raw; raw != "" {
			return raw
		}
		return "null"
	case ast.ListValue:
		for _, child := range v.Children {
			parts = append(parts, r.text(child.Value))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case ast.ObjectValue:
		for _, child := range v.Children {
			parts = append(parts, strconv.Quote(child.Name)+":"+r.text(child.Value))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case ast.StringValue, ast.BlockValue, ast.EnumValue:
		raw, _ := json.Marshal(v.Raw) // a string
		return string(raw)
	default:
		return v.Raw
	}
}
