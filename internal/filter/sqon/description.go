package sqon

import (
	"bytes"
	"encoding/json"

	"tutti/internal/base/jsontext"
	"tutti/internal/filter/fieldtype"
)

// description is the body of the introspection of the language.
type description struct {
	Schema      string             `json:"$schema"`
	Title       string             `json:"title"`
	Description string             `json:"description"`
	Version     string             `json:"version"`
	Aliases     orderedAliases     `json:"aliases"`
	Operators   describedOperators `json:"operators"`
	SQON        object             `json:"schema"`
}

type describedOperators struct {
	Combination []Operator          `json:"combination"`
	Field       []describedOperator `json:"field"`
}

// describedOperator is an operator of clauses. ValueType is written like a TypeScript type; a date is an ISO 8601 string or the
// number of milliseconds since 1970 (ParseDate).
type describedOperator struct {
	Op       Operator `json:"op"`
	FieldRef string   `json:"fieldRef"`
	// ApplicableTo is "all", or a list of types.
	ApplicableTo any    `json:"applicableTo"`
	ValueType    string `json:"valueType"`
}

// orderedAliases is a list of aliases that is encoded as a JSON object in its order.
type orderedAliases []alias

// MarshalJSON returns an object with the operator of each alias.
func (a orderedAliases) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, one := range a {
		b.WriteByte("{,"[min(i, 1)])
		b.Write(jsontext.AppendString(nil, one.name))
		b.WriteByte(':')
		b.Write(jsontext.AppendString(nil, string(one.op)))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

var _ json.Marshaler = orderedAliases(nil)

// Description returns the body of GET /introspection/sqon (CONTRACT section 2), a JSON object. Each call returns a new slice with
// the same bytes.
func Description() []byte {
	d := description{
		Schema:      schemaDialect,
		Title:       title,
		Description: "The filters of the catalogues: operators, their aliases and the JSON Schema of a filter.",
		Version:     LanguageVersion,
		Aliases:     aliases(),
		Operators:   describedOperators{Combination: []Operator{And, Or, Not}},
		SQON:        schema(),
	}
	for _, op := range fieldOperators() {
		d.Operators.Field = append(d.Operators.Field, describe(op))
	}
	return indented(d)
}

// describe returns the description of an operator.
func describe(op Operator) describedOperator {
	d := describedOperator{Op: op, FieldRef: namesMember(op.contentKind()), ApplicableTo: "all"}
	switch op.contentKind() {
	case rangeContent:
		d.ApplicableTo, d.ValueType = fieldtype.Names((*fieldtype.Type).Ordered), "number | date"
	case betweenContent:
		d.ApplicableTo, d.ValueType = fieldtype.Names((*fieldtype.Type).Ordered), "[number | date, number | date]"
	case patternContent:
		d.ApplicableTo, d.ValueType = fieldtype.Names(func(t *fieldtype.Type) bool { return !t.Ordered() && t.Group != fieldtype.Range && t.Name != "alias" }), "string | Array<string>"
	default:
		d.ValueType = "string | number | boolean | Array<string | number | boolean>"
	}
	return d
}
