package sqon_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tutti/internal/filter/sqon"
)

// sketch renders a filter briefly: a clause is the name of its field, a pivot precedes its node.
func sketch(n *sqon.Node) string {
	var b strings.Builder
	if n.Pivot != "" {
		b.WriteString(n.Pivot + ":")
	}
	if !n.Group() {
		return b.String() + strings.Join(n.Fields, "|")
	}
	b.WriteString(string(n.Op) + "(")
	for i, member := range n.Content {
		if i > 0 {
			b.WriteString(" ")
		}
		b.WriteString(sketch(member))
	}
	return b.String() + ")"
}

func group(op sqon.Operator, pivot string, members ...*sqon.Node) *sqon.Node {
	return &sqon.Node{Op: op, Pivot: pivot, Content: members}
}

func clause(fields ...string) *sqon.Node {
	return &sqon.Node{Op: sqon.Wildcard, Fields: fields, Values: []sqon.Value{{Text: "a"}}}
}

func TestHoist(t *testing.T) {
	size, kind, sex, kin, index := clause("files.size"), clause("files.type"), clause("sex"), clause("kin.sex"), clause("files.index.type")
	for name, tt := range map[string]struct {
		root *sqon.Node
		want string
	}{
		"nothing to move":       {group(sqon.Or, "files", size, index), "files:or(files.size files.index.type)"},
		"and":                   {group(sqon.And, "files", size, sex, kind), "and(sex files:and(files.size files.type))"},
		"or":                    {group(sqon.Or, "files", size, sex, kind), "or(files:or(files.size files.type) and(sex files:and()))"},
		"not":                   {group(sqon.Not, "files", size, sex), "and(not(sex) files:not(files.size))"},
		"all of the document":   {group(sqon.Or, "files", sex, kin), "and(or(sex kin.sex) files:and())"},
		"a clause":              {&sqon.Node{Op: sqon.In, Pivot: "files", Fields: []string{"sex"}}, "and(sex files:and())"},
		"or in and":             {group(sqon.And, "files", size, group(sqon.Or, "", kind, sex)), "or(files:and(files.size files.type) and(sex files:files.size))"},
		"and in not":            {group(sqon.Not, "files", group(sqon.And, "", kind, sex)), "or(files:not(files.type) and(not(sex) files:and()))"},
		"not in not":            {group(sqon.Not, "files", group(sqon.Not, "", kind, sex)), "or(files:files.type and(sex files:and()))"},
		"several fields":        {group(sqon.And, "files", clause("files.size", "sex", "files.type")), "or(files:files.size|files.type and(sex files:and()))"},
		"a pivot inside":        {group(sqon.And, "files", size, group(sqon.And, "files.index", index, kind)), "files:and(files.size files.type files.index:files.index.type)"},
		"the document far out":  {group(sqon.And, "files", size, group(sqon.And, "files.index", index, sex)), "and(sex files:and(files.size files.index:files.index.type))"},
		"a pivot beside":        {group(sqon.And, "files", size, group(sqon.And, "kin", kin)), "and(kin:and(kin.sex) files:files.size)"},
		"the same pivot inside": {group(sqon.And, "files", size, group(sqon.Or, "files", kind)), "files:and(files.size or(files.type))"},
		"an ancestor inside":    {group(sqon.And, "files.index", index, group(sqon.And, "files", clause("files.index.size"))), "and(files:and() files.index:and(files.index.type files.index.size))"},
		"both of them inside":   {group(sqon.And, "files.index", index, group(sqon.Or, "files", clause("files.index.size"), size)), "or(and(files:files.size files.index:files.index.type) and(files:and() files.index:and(files.index.type files.index.size)))"},
		"a third one inside":    {group(sqon.And, "files", size, group(sqon.And, "files.index", index, group(sqon.And, "files", kind))), "files:and(files.size files.type files.index:files.index.type)"},
		"the inner one outside": {group(sqon.And, "files.index", index, group(sqon.And, "files", size)), "and(files:and(files.size) files.index:files.index.type)"},
	} {
		t.Run(name, func(t *testing.T) {
			f := sqon.Filter{Root: tt.root}
			got, err := f.Hoist(small())
			if err != nil {
				t.Fatal(err)
			}
			if s := sketch(flat(got).Root); s != tt.want {
				t.Errorf("%s, want %s", s, tt.want)
			}
		})
	}
	t.Run("what needs nothing stays itself", func(t *testing.T) {
		f := sqon.Filter{Root: group(sqon.And, "", group(sqon.Or, "files", size), sex)}
		if got, err := f.Hoist(small()); err != nil || got != f {
			t.Errorf("%v, %v", got, err)
		}
		if got, err := (sqon.Filter{}).Hoist(small()); err != nil || got.Root != nil {
			t.Errorf("%v, %v", got, err)
		}
	})
}

// flat merges nested groups of one kind, but changes nothing else.
func flat(f sqon.Filter) sqon.Filter {
	var walk func(n *sqon.Node) *sqon.Node
	walk = func(n *sqon.Node) *sqon.Node {
		out := *n
		if !n.Group() {
			return &out
		}
		out.Content = nil
		for _, member := range n.Content {
			if m := walk(member); m.Op == n.Op && n.Op != sqon.Not && m.Pivot == "" {
				out.Content = append(out.Content, m.Content...)
			} else {
				out.Content = append(out.Content, m)
			}
		}
		return &out
	}
	return sqon.Filter{Root: walk(f.Root)}
}

// TestHoistLaws checks that the result is equivalent, and that only the innermost bound element matters.
func TestHoistLaws(t *testing.T) {
	rejected, done := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		f := sqon.Filter{Root: filters(5).Draw(t, "filter")}
		if err := f.Check(small()); err != nil {
			rejected++
			if _, hoisting := f.Hoist(small()); hoisting == nil || hoisting.Error() != err.Error() {
				t.Errorf("Check says %v, Hoist %v", err, hoisting)
			}
			return
		}
		done++
		document := documents().Draw(t, "document")
		hoisted, err := f.Hoist(small())
		if err != nil {
			t.Fatal(err)
		}
		want := found(f, document)
		forms := map[string]sqon.Filter{"hoisted": hoisted, "normalized too": hoisted.Normalize()}
		// The normal form may have more alternatives than the filter.
		if other, err := f.Normalize().Hoist(small()); err == nil {
			forms["the other way round"] = other
		}
		for what, g := range forms {
			if got, ok := foundStrictly(g, document); !ok || got != want {
				t.Errorf("%s %s: %s: %t (strict: %t), want %t", sketch(f.Root), what, printed(g), got, ok, want)
			}
		}
	})
	if rejected > done {
		t.Errorf("%d of %d filters were rejected", rejected, rejected+done)
	}
}

func TestHoistRejects(t *testing.T) {
	// Every or doubles the pivots.
	ors := func(n int) *sqon.Node {
		root := group(sqon.And, "files")
		for range n {
			root.Content = append(root.Content, group(sqon.Or, "", clause("files.type"), clause("sex")))
		}
		return root
	}
	many := group(sqon.Or, "files")
	for range 16 {
		many.Content = append(many.Content, group(sqon.And, "", clause("files.type"), clause("sex")))
	}
	if err := (sqon.Filter{Root: ors(4)}).Check(small()); err != nil {
		t.Error(err)
	}
	if err := (sqon.Filter{Root: many}).Check(small()); err != nil {
		t.Error(err)
	}
	many.Content = append(many.Content, clause("files.type"))
	// A pivot on a path that is already bound has no effect.
	hidden := group(sqon.And, "files", group(sqon.And, "files.index", group(sqon.Or, "files")))
	for range 17 {
		or := hidden.Content[0].Content[0]
		or.Content = append(or.Content, group(sqon.And, "", clause("files.index.type"), clause("files.type")))
	}
	hidden.Content[0].Pointer = "/content/0"
	// Sixteen alternatives of two thousand groups.
	wide := ors(4)
	for range 2_000 {
		wide.Content = append(wide.Content, group(sqon.Or, ""))
	}
	// With a pivot at the last place but one, an and stays as deep and an or becomes deeper.
	deep := func(op sqon.Operator) *sqon.Node {
		n := group(op, "files", clause("files.type"), clause("sex"))
		for range sqon.MaxDepth - 2 {
			n = group(sqon.Not, "", n)
		}
		return n
	}
	if err := (sqon.Filter{Root: deep(sqon.And)}).Check(small()); err != nil {
		t.Error(err)
	}
	const (
		tooLarge = "|pivot|the filter is too large or too deep after moving clauses out of pivots that do not bind them"
		tooMany  = `/pivot|pivot|the pivot "files" has more than 16 alternatives with clauses on fields outside of it`
	)
	for name, tt := range map[string]struct {
		root *sqon.Node
		want string
	}{
		"five ors":               {ors(5), tooMany},
		"five thousand ors":      {ors(5_000), tooMany},
		"seventeen alternatives": {many, tooMany},
		"too many values": {
			group(sqon.And, "files", &sqon.Node{Op: sqon.In, Fields: []string{"files.type"}, Values: make([]sqon.Value, 6_000)},
				group(sqon.Or, "", clause("files.type"), clause("sex"))),
			tooLarge,
		},
		"too many nodes":    {wide, tooLarge},
		"too deep":          {deep(sqon.Or), tooLarge},
		"a bound one again": {hidden, strings.ReplaceAll("/content/0"+tooMany, `"files"`, `"files.index"`)},
	} {
		t.Run(name, func(t *testing.T) {
			err := sqon.Filter{Root: tt.root}.Check(small())
			if diff := cmp.Diff([]string{tt.want}, lines(rejected(t, err))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPivotInAnyOrder checks that a pivot on an ancestor does not rebind an already bound path (CONTRACT section 4).
func TestPivotInAnyOrder(t *testing.T) {
	in := func(field, value string) string { return clauseOf("in", field, `"`+value+`"`) }
	document := &row{children: []*row{{path: "files", children: []*row{
		{path: "files.index", values: map[string][]string{"files.index.type": {"x"}, "files.index.size": {"1"}}},
		{path: "files.index", values: map[string][]string{"files.index.type": {"y"}, "files.index.size": {"2"}}},
	}}}}
	for name, tt := range map[string]struct {
		first, second string
		want          bool
	}{
		"of two elements": {in("files.index.type", "x"), in("files.index.type", "y"), false},
		"of one element":  {in("files.index.type", "y"), in("files.index.size", "2"), true},
	} {
		for order, text := range map[string]string{
			"the ancestor inside":  `{"op":"and","pivot":"files.index","content":[` + tt.first + `,{"op":"and","pivot":"files","content":[` + tt.second + `]}]}`,
			"the ancestor outside": `{"op":"and","pivot":"files","content":[{"op":"and","pivot":"files.index","content":[` + tt.first + `,` + tt.second + `]}]}`,
			"the ancestor between": `{"op":"and","pivot":"files.index","content":[{"op":"and","pivot":"files","content":[{"op":"and","pivot":"files.index","content":[` + tt.first + `,` + tt.second + `]}]}]}`,
		} {
			t.Run(name+", "+order, func(t *testing.T) {
				f := parsed(t, text)
				if got := found(f, document); got != tt.want {
					t.Errorf("%t, want %t", got, tt.want)
				}
				hoisted, err := f.Hoist(small())
				if err != nil {
					t.Fatal(err)
				}
				for _, form := range []sqon.Filter{hoisted, hoisted.Normalize()} {
					if got, strict := foundStrictly(form, document); got != tt.want || !strict {
						t.Errorf("%s: %t (strict: %t), want %t", printed(form), got, strict, tt.want)
					}
				}
			})
		}
	}
}
