package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tutti/internal/core"
	"tutti/internal/filter/sqon"
)

// maxClauses is how many clauses and groups build_sqon takes: each unknown name is compared with all names.
const maxClauses = 200

func (c *call) sqonSchema(none) (any, error) { return json.RawMessage(sqon.Description()), nil }

type buildInput struct {
	CatalogueID string `json:"catalogueId"`
	Op          string `json:"op"`
	Pivot       string `json:"pivot"`
	Clauses     []any  `json:"clauses"`
}

type built struct {
	Valid   bool            `json:"valid"`
	SQON    json.RawMessage `json:"sqon"`
	Summary string          `json:"summary"`
}

// buildSQON returns the SQON of clauses, or the errors of all clauses.
func (c *call) buildSQON(in buildInput) (any, error) {
	found, err := c.catalogue(in.CatalogueID)
	if err != nil {
		return nil, err
	}
	if in.Op == "" {
		in.Op = string(sqon.And)
	}
	b := builder{fields: newFields(found)}
	root := group(in.Op, in.Pivot, []any{})
	for i, clause := range in.Clauses {
		root["content"] = append(root["content"].([]any), b.node("clauses/"+strconv.Itoa(i), clause, b.pivots(nil, in.Pivot)))
	}
	b.check("", "", group(in.Op, in.Pivot, []any{}), nil)
	if b.count > maxClauses {
		return nil, &core.Error{
			Code: core.CodeInvalid, Message: fmt.Sprintf("%d clauses are more than %d", b.count, maxClauses), Hint: "a clause with the operator in takes many values",
		}
	}
	if len(b.errors) > 0 {
		return nil, &clausesError{b.errors}
	}
	raw, filter, err := parse(root, b.fields)
	if err != nil {
		return nil, core.NewError(core.CodeInvalid, violationsText(err))
	}
	return built{true, raw, summary(filter.Root)}, nil
}

// clauseError is one error of the clauses of build_sqon.
type clauseError struct {
	// At is the JSON pointer of what is wrong, in the arguments of the tool without the leading slash.
	At      string `json:"at"`
	Message string `json:"message"`
}

// clausesError has the errors of all clauses.
type clausesError struct{ errors []clauseError }

// Error implements error.
func (e *clausesError) Error() string { return e.Unwrap().Error() }

// Unwrap returns the error that is shown.
func (e *clausesError) Unwrap() error {
	lines := make([]string, len(e.errors))
	for i, one := range e.errors {
		lines[i] = strings.TrimPrefix(one.At+": ", ": ") + one.Message
	}
	lines = append(lines, "get_catalogue_fields lists the fields and the operators of their types")
	return core.NewError(core.CodeInvalid, strings.Join(lines, "\n"))
}

// body returns the errors for programs.
func (e *clausesError) body() any { return map[string]any{"valid": false, "errors": e.errors} }

// builder converts clauses of build_sqon to SQON, and checks each on its own, so that each error has its suggestion.
type builder struct {
	fields fields
	errors []clauseError
	count  int
}

// pivots returns the pivots around the members of a group: an invalid one is reported with the group, not with each member.
func (b *builder) pivots(around []string, pivot string) []string {
	if b.fields[pivot].Type != "nested" {
		return around
	}
	return append(slices.Clone(around), pivot)
}

// node returns the SQON of a clause or a group, whose pointer is at, below some pivots.
func (b *builder) node(at string, clause any, pivots []string) any {
	if b.count++; b.count > maxClauses {
		return nil
	}
	members, ok := clause.(map[string]any)
	if !ok || members["content"] != nil { // SQON already, or nothing that the parser accepts
		b.check(at, "", clause, pivots)
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
	list, isGroup := members["clauses"].([]any)
	if !isGroup {
		if op := members["op"]; (op == "filter" || op == "wildcard") && content["fieldNames"] == nil && content["fieldName"] != nil {
			content["fieldNames"] = []any{content["fieldName"]}
			delete(content, "fieldName")
		}
		n["content"] = content
		b.check(at, contentPointer, n, pivots)
		return n
	}
	n["content"] = []any{}
	b.check(at, contentPointer, n, pivots)
	pivot, _ := n["pivot"].(string)
	of := make([]any, len(list))
	for i, one := range list {
		of[i] = b.node(at+"/clauses/"+strconv.Itoa(i), one, b.pivots(pivots, pivot))
	}
	n["content"] = of
	return n
}

// contentPointer is the pointer of the member of SQON that clauses of build_sqon do without.
const contentPointer = "/content"

// check adds the violations of a node below some pivots. omitted is the beginning of a pointer into the node that the input lacks.
func (b *builder) check(at, omitted string, n any, pivots []string) {
	for _, pivot := range slices.Backward(pivots) {
		n = group(string(sqon.And), pivot, []any{n})
		omitted = contentPointer + "/0" + omitted
	}
	_, _, err := parse(n, b.fields)
	if err == nil {
		return
	}
	e, ok := errors.AsType[*core.Error](err)
	if !ok || len(e.Violations) == 0 {
		b.errors = append(b.errors, clauseError{at, core.MessageOf(err)})
		return
	}
	for _, v := range e.Violations {
		pointer, ok := strings.CutPrefix(v.Pointer, omitted)
		if !ok {
			pointer = strings.TrimPrefix(v.Pointer, strings.Repeat(contentPointer+"/0", len(pivots)))
		}
		b.errors = append(b.errors, clauseError{strings.Trim(at+pointer, "/"), v.Message})
	}
}

// group returns a group of SQON.
func group(op, pivot string, content []any) map[string]any {
	g := map[string]any{"op": op, "content": content}
	if pivot != "" {
		g["pivot"] = pivot
	}
	return g
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
		return core.DisplayOf(err)
	}
	texts := make([]string, len(e.Violations))
	for i, v := range e.Violations {
		texts[i] = v.Message
		if v.Pointer != "" {
			texts[i] += " (" + v.Pointer + ")"
		}
	}
	return strings.Join(texts, "; ")
}
