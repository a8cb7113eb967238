package sqon_test

import (
	"slices"
	"strconv"

	"pgregory.net/rapid"

	"tutti/internal/filter/sqon"
)

// row is a document or a nested element of one, with its own values.
type row struct {
	path     string
	values   map[string][]string
	children []*row
}

// below returns the rows at a path below r, r itself if it is one.
func (r *row) below(path string) []*row {
	if r.path == path {
		return []*row{r}
	}
	var rows []*row
	for _, child := range r.children {
		rows = append(rows, child.below(path)...)
	}
	return rows
}

// bound is an element bound by a pivot.
type bound struct {
	path string
	row  *row
}

// evaluator evaluates a filter by its definition (CONTRACT section 4), by trying everything.
type evaluator struct {
	fields   catalogue
	document *row
	// strict requires that everything below a pivot is about a field below it, so that only the innermost bound element matters.
	strict bool
	// lost is set when this was not so.
	lost bool
}

// scope returns the row of a field: the bound element with the longest path.
func (e *evaluator) scope(env []bound, name string) *row {
	for _, path := range slices.Backward(e.fields[name].Nested) {
		if i := slices.IndexFunc(env, func(b bound) bool { return b.path == path }); i >= 0 {
			e.lost = e.lost || e.strict && i < len(env)-1
			return env[i].row
		}
	}
	e.lost = e.lost || e.strict && len(env) > 0
	return e.document
}

func (e *evaluator) node(n *sqon.Node, env []bound) bool {
	if n.Pivot != "" {
		if !slices.ContainsFunc(env, func(b bound) bool { return b.path == n.Pivot }) {
			return slices.ContainsFunc(e.scope(env, n.Pivot).below(n.Pivot), func(r *row) bool {
				return e.body(n, append(slices.Clip(env), bound{n.Pivot, r}))
			})
		}
		e.lost = e.lost || e.strict
	}
	return e.body(n, env)
}

func (e *evaluator) body(n *sqon.Node, env []bound) bool {
	some := func(want bool) bool {
		found := false
		for _, member := range n.Content {
			found = e.node(member, env) == want || found
		}
		return found
	}
	switch n.Op {
	case sqon.And:
		return !some(false)
	case sqon.Or:
		return some(true)
	case sqon.Not:
		return !some(true)
	default:
	}
	found := false
	for _, name := range n.Fields {
		scope := e.scope(env, name)
		path := ""
		if nested := e.fields[name].Nested; len(nested) > 0 {
			path = nested[len(nested)-1]
		}
		found = asked(n, name, path, scope) || found
	}
	return found
}

// asked evaluates a clause on one field.
func asked(n *sqon.Node, name, path string, scope *row) bool {
	rows := scope.below(path)
	in := func(rows []*row, values []sqon.Value) bool {
		return slices.ContainsFunc(values, func(v sqon.Value) bool { return holds(rows, name, v.Term()) })
	}
	switch n.Op {
	case sqon.In:
		return in(rows, n.Values)
	case sqon.NotIn:
		return !in(rows, n.Values)
	case sqon.SomeNotIn:
		return slices.ContainsFunc(rows, func(r *row) bool { return !in([]*row{r}, n.Values) })
	case sqon.All:
		return !slices.ContainsFunc(n.Values, func(v sqon.Value) bool { return !in(rows, []sqon.Value{v}) })
	case sqon.Wildcard:
		return slices.ContainsFunc(n.Values, func(v sqon.Value) bool {
			return some(rows, name, v.Pattern().MatchFold)
		})
	default:
		return some(rows, name, func(value string) bool { return inRange(n, value) })
	}
}

func some(rows []*row, name string, is func(value string) bool) bool {
	return slices.ContainsFunc(rows, func(r *row) bool { return slices.ContainsFunc(r.values[name], is) })
}

func holds(rows []*row, name string, term sqon.Term) bool {
	switch term.Kind {
	case sqon.TermMissing:
		return !some(rows, name, func(string) bool { return true })
	case sqon.TermPattern:
		return some(rows, name, term.Pattern.Match)
	default:
		return some(rows, name, func(value string) bool { return value == term.Text })
	}
}

func inRange(n *sqon.Node, value string) bool {
	x, _ := strconv.ParseFloat(value, 64)
	bound, _ := strconv.ParseFloat(n.Values[0].Text, 64)
	switch n.Op {
	case sqon.Gt:
		return x > bound
	case sqon.Gte:
		return x >= bound
	case sqon.Lt:
		return x < bound
	case sqon.Lte:
		return x <= bound
	default:
		to, _ := strconv.ParseFloat(n.Values[1].Text, 64)
		return x >= bound && x <= to
	}
}

// found reports whether a filter matches a document.
func found(f sqon.Filter, document *row) bool {
	if f.Root == nil {
		return true
	}
	return (&evaluator{fields: small(), document: document}).node(f.Root, nil)
}

// foundStrictly is found for a filter in which everything below a pivot is about a field below it; ok reports whether it is.
func foundStrictly(f sqon.Filter, document *row) (is, ok bool) {
	if f.Root == nil {
		return true, true
	}
	e := &evaluator{fields: small(), document: document, strict: true}
	is = e.node(f.Root, nil)
	return is, !e.lost
}

// documents returns documents with the fields of small.
func documents() *rapid.Generator[*row] {
	words := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab"}), 0, 2)
	numbers := rapid.SliceOfN(rapid.SampledFrom([]string{"1", "2", "3"}), 0, 2)
	return rapid.Custom(func(t *rapid.T) *row {
		document := &row{values: map[string][]string{"sex": words.Draw(t, "sex"), "age": numbers.Draw(t, "age")}}
		for range rapid.IntRange(0, 2).Draw(t, "files") {
			file := &row{path: "files", values: map[string][]string{
				"files.type": words.Draw(t, "type"), "files.size": numbers.Draw(t, "size"),
			}}
			for range rapid.IntRange(0, 2).Draw(t, "indices") {
				file.children = append(file.children, &row{path: "files.index", values: map[string][]string{
					"files.index.type": words.Draw(t, "type"), "files.index.size": numbers.Draw(t, "size"),
				}})
			}
			document.children = append(document.children, file)
		}
		for range rapid.IntRange(0, 2).Draw(t, "kin") {
			document.children = append(document.children,
				&row{path: "kin", values: map[string][]string{"kin.sex": words.Draw(t, "sex")}})
		}
		return document
	})
}

// filters returns valid filters on the fields of small, of the given depth.
func filters(depth int) *rapid.Generator[*sqon.Node] {
	return rapid.Custom(func(t *rapid.T) *sqon.Node { return drawNode(t, depth) })
}

func drawNode(t *rapid.T, depth int) *sqon.Node {
	n := &sqon.Node{}
	if rapid.IntRange(0, 2).Draw(t, "has pivot") == 0 {
		n.Pivot = rapid.SampledFrom([]string{"files", "files", "files.index", "kin"}).Draw(t, "pivot")
	}
	if depth > 1 && rapid.IntRange(0, 3).Draw(t, "is group") > 0 {
		n.Op = rapid.SampledFrom([]sqon.Operator{sqon.And, sqon.Or, sqon.Not}).Draw(t, "op")
		n.Content = []*sqon.Node{}
		for range rapid.IntRange(0, 3).Draw(t, "members") {
			n.Content = append(n.Content, drawNode(t, depth-1))
		}
		return n
	}
	word := rapid.SampledFrom([]string{"sex", "files.type", "files.index.type", "kin.sex"})
	number := rapid.SampledFrom([]string{"age", "files.size", "files.index.size"})
	text := rapid.SampledFrom([]string{"a", "b", "ab", "a*", "*b", "__missing__", `\*`})
	digit := rapid.SampledFrom([]string{"1", "2", "3"})
	switch n.Op = rapid.SampledFrom([]sqon.Operator{
		sqon.In, sqon.NotIn, sqon.SomeNotIn, sqon.All, sqon.Gt, sqon.Gte, sqon.Lt, sqon.Lte, sqon.Between, sqon.Wildcard,
	}).Draw(t, "op"); n.Op {
	case sqon.In, sqon.NotIn, sqon.SomeNotIn, sqon.All:
		n.Fields = []string{word.Draw(t, "field")}
		for range rapid.IntRange(0, 3).Draw(t, "values") {
			n.Values = append(n.Values, sqon.Value{Text: text.Draw(t, "value")})
		}
	case sqon.Wildcard:
		n.Fields = rapid.SliceOfN(word, 1, 3).Draw(t, "fields")
		n.Values = []sqon.Value{{Text: rapid.SampledFrom([]string{"A", "b", "?", "a*b"}).Draw(t, "value")}}
	default:
		n.Fields = []string{number.Draw(t, "field")}
		n.Values = []sqon.Value{{Kind: sqon.Number, Text: digit.Draw(t, "value")}}
		if n.Op == sqon.Between {
			n.Values = append(n.Values, sqon.Value{Kind: sqon.Number, Text: digit.Draw(t, "value")})
		}
	}
	return n
}
