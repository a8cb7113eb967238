package graphql_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/core"
	"tutti/internal/search/graphql"
	"tutti/internal/search/view"
	"tutti/internal/tools/testkit"
)

// asking generates random operations of a schema.
type asking struct {
	*rand.Rand
	types     *ast.Schema
	out       strings.Builder
	fragments []string
	aliases   int
	vars      []string
	values    []string
}

func (a *asking) one(words ...string) string { return words[a.IntN(len(words))] }

func (a *asking) operation() (query, variables string) {
	a.set(a.types.Query, 0)
	body := a.out.String()
	head := "query q"
	if len(a.vars) > 0 {
		head += "(" + strings.Join(a.vars, ",") + ")"
	}
	return head + body + strings.Join(a.fragments, " "), "{" + strings.Join(a.values, ",") + "}"
}

func (a *asking) set(of *ast.Definition, depth int) {
	a.out.WriteString("{")
	n := 1 + a.IntN(4)
	for range n {
		switch k := a.IntN(20); {
		case k == 0:
			a.out.WriteString(" __typename")
		case k == 1 && depth < 8:
			a.out.WriteString(" ... on " + of.Name)
			a.set(of, depth+1)
		case k == 2 && depth < 8 && len(a.fragments) < 5:
			a.fragment(of, depth)
		default:
			a.field(of, depth)
		}
	}
	a.out.WriteString("}")
}

func (a *asking) fragment(of *ast.Definition, depth int) {
	outer := a.out
	name := fmt.Sprintf("f%d", len(a.fragments))
	a.fragments = append(a.fragments, "")
	a.out = strings.Builder{}
	a.set(of, depth+1)
	a.fragments[len(name)-2+int(name[1]-'0')] = " fragment " + name + " on " + of.Name + a.out.String()
	a.out = strings.Builder{}
	a.out.WriteString(outer.String() + " ..." + name)
}

func (a *asking) field(of *ast.Definition, depth int) {
	f := of.Fields[a.IntN(len(of.Fields))]
	def := a.types.Types[f.Type.Name()]
	a.out.WriteString(" ")
	if strings.HasPrefix(f.Name, "__") || depth > 14 && def.Kind == ast.Object {
		a.out.WriteString("__typename")
		return
	}
	if a.IntN(4) == 0 && a.aliases < 14 {
		a.aliases++
		fmt.Fprintf(&a.out, "x%d:", a.aliases)
	}
	a.out.WriteString(f.Name)
	var args []string
	for _, arg := range f.Arguments {
		if arg.Type.NonNull || a.IntN(3) == 0 {
			args = append(args, arg.Name+":"+a.value(arg))
		}
	}
	if len(args) > 0 {
		a.out.WriteString("(" + strings.Join(args, ",") + ")")
	}
	if a.IntN(10) == 0 {
		a.out.WriteString(a.one("@skip(if:false)", "@include(if:false)", "@include(if:true)"))
	}
	if def.Kind == ast.Object {
		a.set(def, depth+1)
	}
}

// value returns a value of an argument, sometimes an invalid one.
func (a *asking) value(arg *ast.ArgumentDefinition) string {
	switch arg.Name {
	case "filters", "filter", "sqon":
		leaf := func() string {
			return a.one(
				`{"op":"in","content":{"fieldName":"studyId","value":["S1","__missing__"]}}`, `{"op":"not-in","content":{"fieldName":"files.name","value":["f1"]}}`,
				`{"op":"between","content":{"fieldName":"count","value":[1,1e3]}}`, `{"op":"some-not-in","content":{"fieldName":"files.parts.n","value":2}}`,
				`{"op":"filter","content":{"fieldNames":["studyId","tags"],"value":"a*"}}`, `{"op":"in","content":{"fieldName":"open","value":[true]}}`,
			)
		}
		raw := `{"op":"` + a.one("and", "or", "not") + `","content":[` + leaf() + `,` + leaf() + `]}`
		name := fmt.Sprintf("v%d", len(a.vars))
		a.vars, a.values = append(a.vars, "$"+name+":JSON"+bang(arg)), append(a.values, `"`+name+`":`+raw)
		return "$" + name
	case "sort":
		return a.one(`{fieldName:"count",order:desc}`, `[{fieldName:"files.name",mode:max},{fieldName:"_id"}]`, `[]`)
	case "searchAfter":
		return a.one(`null`, `["a"]`)
	case "_source", "fieldNames":
		return a.one(`["files.name","tags"]`, `"experiment"`, `[]`)
	case "ranges":
		return a.one(`[{from:1},{to:2.5,key:"k"}]`, `{}`, `null`)
	case "nodesFilter":
		return a.one(`["a"]`, `null`)
	}
	switch arg.Type.Name() {
	case "Int":
		return a.one("1", "2", "10", "1", "0")
	case "Float":
		return a.one("1", "0.5", "1e3")
	case "Boolean":
		return a.one("true", "false")
	case "String":
		return a.one(`"a"`, `"""b"""`, `""`)
	default:
		return "null"
	}
}

func bang(arg *ast.ArgumentDefinition) string {
	if arg.Type.NonNull {
		return "!"
	}
	return ""
}

// document returns a random object that a mapping might accept.
func (a *asking) document(depth int) string {
	names := []string{"studyId", "count", "small", "ratio", "open", "created", "info", "tags", "experiment", "platform", "lab", "city", "files", "name", "size", "parts", "n"}
	var members []string
	for range a.IntN(8) {
		members = append(members, `"`+names[a.IntN(len(names))]+`":`+a.json(depth))
	}
	return "{" + strings.Join(members, a.one(",", " , ")) + "}"
}

func (a *asking) json(depth int) string {
	switch k := a.IntN(12); {
	case k < 3 && depth < 4:
		return a.document(depth + 1)
	case k < 5 && depth < 4:
		return "[" + a.json(depth+1) + ", " + a.json(depth+1) + "]"
	default:
		return a.one(`"a"`, `"\"\\\u00e9"`, `""`, "1", "-0.5", "1e300", "3000000000", "true", "false", "null", "[]", "{}")
	}
}

// TestRandomOperations: every valid operation returns JSON with the requested fields, whatever documents contain.
func TestRandomOperations(t *testing.T) {
	d := plain()
	d.EnableSets = true
	m := model(t, d, mappings)
	e := &engine{}
	service := graphql.New(view.New(e, view.Config{}), graphql.Config{Sets: &sets{}, Network: &network{}})
	text, err := service.Schema(m)
	if err != nil {
		t.Fatal(err)
	}
	types, err := gqlparser.LoadSchema(&ast.Source{Input: text})
	if err != nil {
		t.Fatal(err)
	}
	rounds := testkit.Cases(1500)
	executed, seed := 0, uint64(20_260_102)
	for i := range uint64(rounds) {
		a := &asking{Rand: rand.New(rand.NewPCG(seed, i)), types: types}
		query, variables := a.operation()
		source := a.document(0)
		e.answer = anything(source)
		got := service.Execute(t.Context(), m, core.Principal{ID: "me"}, core.GraphQLRequest{Query: query, Variables: json.RawMessage(variables)})
		held(t, got)
		if t.Failed() {
			t.Fatalf("seed %d, %d: %s %s on %s", seed, i, query, variables, source)
		}
		if !got.Rejected {
			executed++
		}
	}
	if executed < rounds/4 {
		t.Errorf("only %d of %d were executed", executed, rounds)
	}
}
