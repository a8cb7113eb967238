package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"tutti/internal/core"
	"tutti/internal/filter/sqon"
)

func (c call) sqonSchema(none) (any, error) { return json.RawMessage(sqon.Description()), nil }

type buildInput struct {
	CatalogueID string `json:"catalogueId" jsonschema:"the id of a catalogue, from list_catalogues"`
	Op          string `json:"op,omitempty" jsonschema:"how the clauses combine: and (default), or, not"`
	Pivot       string `json:"pivot,omitempty" jsonschema:"a nested field: one element of it must match all clauses"`
	Clauses     []any  `json:"clauses" jsonschema:"clauses {op, fieldName, value, pivot?}, and groups {op: and|or|not, clauses: [...], pivot?}; for the operator filter fieldNames instead of fieldName"`
}

type built struct {
	Valid   bool            `json:"valid"`
	SQON    json.RawMessage `json:"sqon"`
	Summary string          `json:"summary"`
}

// buildSQON returns the SQON of clauses. Each clause is checked on its own, so that the error has the violations of all of them.
func (c call) buildSQON(in buildInput) (any, error) {
	found, err := c.catalogue(in.CatalogueID)
	if err != nil {
		return nil, err
	}
	if in.Op == "" {
		in.Op = "and"
	}
	if in.Op != "and" && in.Op != "or" && in.Op != "not" {
		return nil, &core.Error{Code: core.CodeInvalid, Message: fmt.Sprintf("unknown op %.40q", in.Op), Hint: "use and, or, not"}
	}
	fields := newFields(found)
	var failed []string
	nodes := make([]any, len(in.Clauses))
	for i, clause := range in.Clauses {
		nodes[i] = node(clause)
		// The pivot of the whole filter binds the clause, too.
		if _, _, err := parse(group("and", in.Pivot, []any{nodes[i]}), fields); err != nil {
			failed = append(failed, fmt.Sprintf("clause %d: %s", i, violationsText(err)))
		}
	}
	if len(failed) > 0 {
		return nil, &core.Error{
			Code: core.CodeInvalid, Message: strings.Join(failed, "\n"), Hint: "get_catalogue_fields lists the fields and the operators of their types",
		}
	}
	raw, filter, err := parse(group(in.Op, in.Pivot, nodes), fields)
	if err != nil {
		return nil, core.NewError(core.CodeInvalid, violationsText(err))
	}
	return built{true, raw, summary(filter.Root)}, nil
}

// group returns a group of SQON.
func group(op, pivot string, content []any) map[string]any {
	g := map[string]any{"op": op, "content": content}
	if pivot != "" {
		g["pivot"] = pivot
	}
	return g
}

// node returns the SQON of a clause of build_sqon. What is neither a clause nor a group is left to the parser, which rejects it.
func node(clause any) any {
	members, ok := clause.(map[string]any)
	if !ok || members["content"] != nil {
		return clause
	}
	n, content := map[string]any{}, map[string]any{}
	for name, value := range members {
		switch name {
		case "fieldName", "fieldNames", "value":
			content[name] = value
		case "clauses":
		default:
			n[name] = value
		}
	}
	if list, isGroup := members["clauses"].([]any); isGroup {
		of := make([]any, len(list))
		for i, one := range list {
			of[i] = node(one)
		}
		n["content"] = of
		return n
	}
	n["content"] = content
	return n
}

// parse encodes, parses and checks a filter.
func parse(tree any, fields fields) (json.RawMessage, sqon.Filter, error) {
	raw, err := json.Marshal(tree)
	if err != nil {
		return nil, sqon.Filter{}, core.WrapError(core.CodeInvalid, "the filter is not JSON", err)
	}
	filter, err := sqon.Parse(raw)
	if err == nil {
		err = filter.Check(fields)
	}
	return raw, filter, err
}

// violationsText returns the violations of an error of Parse or Check.
func violationsText(err error) string {
	e, ok := errors.AsType[*core.Error](err)
	if !ok || len(e.Violations) == 0 {
		return toolError(err).Error()
	}
	texts := make([]string, len(e.Violations))
	for i, v := range e.Violations {
		texts[i] = v.Message + " (" + v.Pointer + ")"
	}
	return strings.Join(texts, "; ")
}

// summary describes a filter in words.
func summary(n *sqon.Node) string {
	if n == nil {
		return "everything"
	}
	text := ""
	if n.Group() {
		parts := make([]string, len(n.Content))
		for i, member := range n.Content {
			parts[i] = summary(member)
		}
		switch n.Op {
		case sqon.Not:
			text = "none of (" + strings.Join(parts, "; ") + ")"
		case sqon.Or:
			text = "(" + strings.Join(parts, " or ") + ")"
		default:
			text = "(" + strings.Join(parts, " and ") + ")"
		}
		if len(parts) == 0 {
			text = string(n.Op) + " of nothing"
		}
	} else {
		values := make([]string, len(n.Values))
		for i, v := range n.Values {
			values[i] = v.Text
		}
		text = strings.Join(n.Fields, ", ") + " " + string(n.Op) + " [" + describeNames(values) + "]"
	}
	if n.Pivot != "" {
		text = "one element of " + n.Pivot + " with " + text
	}
	return text
}

// fields are the fields of a catalogue by name.
type fields map[string]sqon.Field

var (
	_ sqon.Fields = fields(nil)
	_ sqon.Names  = fields(nil)
)

func newFields(c *core.Catalogue) fields {
	f := make(fields, len(c.Fields))
	for _, one := range c.Fields {
		f[one.Name] = sqon.Field{Type: one.Type}
	}
	for name, field := range f {
		for i := range name + "." {
			if i == len(name) || name[i] == '.' {
				if f[name[:i]].Type == "nested" {
					field.Nested = append(field.Nested, name[:i])
				}
			}
		}
		f[name] = field
	}
	return f
}

// Field implements sqon.Fields.
func (f fields) Field(name string) (sqon.Field, bool) {
	field, ok := f[name]
	return field, ok
}

// Names implements sqon.Names.
func (f fields) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range f {
			if !yield(name) {
				return
			}
		}
	}
}
