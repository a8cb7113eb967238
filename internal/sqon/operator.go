package sqon

// Operator is what a clause asks of the values of its field, or how a group combines its clauses.
type Operator string

// Operators. A parsed filter has these names only; aliases are resolved.
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
