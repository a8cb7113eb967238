package sqon

import (
	"strings"

	"tutti/internal/filter/fieldtype"
)

// Operator is how a clause compares the values of its field, or how a group combines its members.
type Operator string

// Operators. A parsed filter has only these names; aliases are resolved.
const (
	And Operator = "and"
	Or  Operator = "or"
	Not Operator = "not"

	In        Operator = "in"
	NotIn     Operator = "not-in"
	SomeNotIn Operator = "some-not-in"
	All       Operator = "all"
	Gt        Operator = "gt"
	Gte       Operator = "gte"
	Lt        Operator = "lt"
	Lte       Operator = "lte"
	Between   Operator = "between"
	Wildcard  Operator = "wildcard"
)

// contentKind is the kind of content that an operator requires.
type contentKind int

const (
	unknownContent contentKind = iota
	// groupContent is a list of filters.
	groupContent
	// listContent is a field and any number of values.
	listContent
	// rangeContent is a field and one bound.
	rangeContent
	// betweenContent is a field and two bounds.
	betweenContent
	// patternContent is fields and one or more texts.
	patternContent
)

// contentKind returns the content that o requires, unknownContent for an unknown operator.
func (o Operator) contentKind() contentKind {
	switch o {
	case And, Or, Not:
		return groupContent
	case In, NotIn, SomeNotIn, All:
		return listContent
	case Gt, Gte, Lt, Lte:
		return rangeContent
	case Between:
		return betweenContent
	case Wildcard:
		return patternContent
	default:
		return unknownContent
	}
}

// alias is another name of an operator.
type alias struct {
	name string
	op   Operator
}

// aliases returns all aliases, in the order of the description.
func aliases() []alias {
	return []alias{
		{"filter", Wildcard},
		{"=", In},
		{"==", In},
		{"===", In},
		{"!=", NotIn},
		{"!==", NotIn},
		{">", Gt},
		{">=", Gte},
		{"<", Lt},
		{"<=", Lte},
	}
}

// resolve returns the operator of a name or an alias, which are case-sensitive; false when it is neither.
func resolve(name string) (Operator, bool) {
	if op := Operator(name); op.contentKind() != unknownContent {
		return op, true
	}
	for _, a := range aliases() {
		if a.name == name {
			return a.op, true
		}
	}
	return "", false
}

// foreign are the names of operators in other query languages, in lower case, by the operator that does the same or comes closest.
func foreign() map[string]Operator {
	return map[string]Operator{
		"like": Wildcard, "ilike": Wildcard, "contains": Wildcard, "matches": Wildcard, "regex": Wildcard, "regexp": Wildcard, "startswith": Wildcard, "prefix": Wildcard,
		"eq": In, "equals": In, "is": In, "terms": In, "term": In, "any": In,
		"ne": NotIn, "neq": NotIn, "nin": NotIn, "not_equals": NotIn, "<>": NotIn,
		"range": Between, "ge": Gte, "le": Lte, "&&": And, "||": Or, "!": Not,
	}
}

// suggestOp returns the text that suggests the operator that an unknown name probably means, "" if none is close enough.
func suggestOp(name string) string {
	if op, is := foreign()[strings.ToLower(name)]; is {
		return didYouMean(string(op))
	}
	return suggestWord(name, opNames()...)
}

// fieldOperators returns the operators of clauses, in the order of the description.
func fieldOperators() []Operator {
	return []Operator{In, NotIn, SomeNotIn, All, Gt, Gte, Lt, Lte, Between, Wildcard}
}

// Operators returns the operators for clauses on a field of the search engine's type, by the names and in the order of CONTRACT
// section 2, where Wildcard has the name of its alias filter. All and SomeNotIn are supported for every type, and not always
// listed. Each call returns a new slice.
func Operators(fieldType string) []string {
	switch t := fieldtype.Of(fieldType); {
	case t.Ordered():
		return []string{"in", "not-in", "gt", "gte", "lt", "lte", "between"}
	case t.Searchable() && !t.Analyzed():
		return []string{"in", "not-in", "some-not-in", "all", "filter"}
	case t.Group == fieldtype.Range:
		return []string{"in", "not-in"}
	default:
		return []string{"in", "not-in", "filter"}
	}
}

// applies reports whether a clause with o may be on a field of a type.
func (o Operator) applies(fieldType string) bool {
	t := fieldtype.Of(fieldType)
	ordered := t.Ordered()
	switch o.contentKind() {
	case listContent:
		return true
	case rangeContent, betweenContent:
		return ordered
	case patternContent:
		return !ordered && t.Group != fieldtype.Range
	default:
		return false
	}
}
