package sqon_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v5"

	"tutti/internal/filter/sqon"
	"tutti/internal/tools/testkit"
)

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-update writes it): %s", file, diff)
	}
}

func TestSchemaGolden(t *testing.T) {
	golden(t, "testdata/schema.golden.json", sqon.Schema())
	golden(t, "testdata/description.golden.json", sqon.Description())
}

func TestDescription(t *testing.T) {
	var got struct {
		Aliases   map[string]sqon.Operator
		Operators struct {
			Combination []sqon.Operator
			Field       []struct {
				Op           sqon.Operator
				FieldRef     string
				ApplicableTo any
			}
		}
		Schema json.RawMessage
	}
	if err := json.Unmarshal(sqon.Description(), &got); err != nil {
		t.Fatal(err)
	}
	t.Run("aliases", func(t *testing.T) {
		want := map[string]sqon.Operator{
			"filter": sqon.Wildcard, "=": sqon.In, "==": sqon.In, "===": sqon.In, "!=": sqon.NotIn, "!==": sqon.NotIn,
			">": sqon.Gt, ">=": sqon.Gte, "<": sqon.Lt, "<=": sqon.Lte,
		}
		if diff := cmp.Diff(want, got.Aliases); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("schema", func(t *testing.T) {
		var inside, alone any
		if err := json.Unmarshal(got.Schema, &inside); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(sqon.Schema(), &alone); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(alone, inside); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("what operators apply to", func(t *testing.T) {
		if len(got.Operators.Combination) != 3 || len(got.Operators.Field) != 10 {
			t.Fatalf("%+v", got.Operators)
		}
		for _, o := range got.Operators.Field {
			types, listed := o.ApplicableTo.([]any)
			if !listed {
				types = []any{"keyword", "long", "date", "text"}
			}
			for _, fieldType := range types {
				content := map[string]any{"fieldName": "a", "value": "2024"}
				switch {
				case o.FieldRef == "fieldNames":
					content = map[string]any{"fieldNames": []string{"a"}, "value": "2024"}
				case o.Op == sqon.Between:
					content["value"] = []any{"2024", "2025"}
				}
				text, err := json.Marshal(map[string]any{"op": o.Op, "content": content})
				if err != nil {
					t.Fatal(err)
				}
				name, _ := fieldType.(string)
				if err := parsed(t, string(text)).Check(catalogue{"a": {Type: name}}); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	// Compiling validates the schema against its dialect.
	schema, err := jsonschema.CompileString("urn:tutti:sqon", string(sqon.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	if schema.Draft != jsonschema.Draft2020 {
		t.Errorf("the schema is of %s", schema.Draft)
	}
	return schema
}

// TestSchemaAgreesWithParse checks that the schema accepts exactly what Parse accepts, except for limits, duplicate members and invalid
// JSON, which are not generated.
func TestSchemaAgreesWithParse(t *testing.T) {
	schema := compiled(t)
	inputs := testkit.Cases(10_000)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := generator{rand.New(rand.NewPCG(seed, 1))}
	accepted, onlyMutated := 0, 0
	for range inputs {
		value := g.filter(4)
		mutations := g.IntN(3)
		for range mutations {
			value = g.mutate(value)
		}
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		_, parsing := sqon.Parse(text)
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		var instance any
		if err := decoder.Decode(&instance); err != nil {
			t.Fatal(err)
		}
		validating := schema.Validate(instance)
		if (parsing == nil) != (validating == nil) {
			t.Fatalf("seed %d: %s: Parse says %v, the schema %v", seed, text, parsing, validating)
		}
		if parsing == nil {
			accepted++
			if mutations > 0 {
				onlyMutated++
			}
		} else if mutations == 0 {
			t.Fatalf("seed %d: %s: %v", seed, text, parsing)
		}
	}
	t.Logf("%d of %d accepted, %d of them mutated", accepted, inputs, onlyMutated)
	if accepted < inputs/3 || accepted > inputs*2/3 || onlyMutated < inputs/50 {
		t.Errorf("%d of %d accepted, %d of them mutated, is not enough", accepted, inputs, onlyMutated)
	}
}

// generator generates filters as JSON values, valid and invalid ones.
type generator struct{ *rand.Rand }

func pick[T any](g generator, from ...T) T { return from[g.IntN(len(from))] }

func (g generator) filter(depth int) any {
	switch n := g.IntN(20); {
	case n == 0:
		return nil
	case n == 1:
		return map[string]any{}
	case n < 10 && depth > 0:
		members := []any{}
		for range g.IntN(4) {
			members = append(members, g.filter(depth-1))
		}
		return g.pivoted(map[string]any{"op": pick(g, "and", "or", "not"), "content": members})
	default:
		return g.pivoted(g.clause())
	}
}

func (g generator) pivoted(node map[string]any) any {
	if g.IntN(4) == 0 {
		node["pivot"] = pick[any](g, nil, ".", "files", "é")
	}
	return node
}

func (g generator) clause() map[string]any {
	content := map[string]any{"fieldName": pick(g, "a", "b.c")}
	bound := func() any { return pick[any](g, 1, -2.5, "2024", "") }
	text := func() any { return pick[any](g, "", "x*", "__missing__") }
	list := func(least, most int, of func() any) any {
		values := []any{}
		for range least + g.IntN(most-least+1) {
			values = append(values, of())
		}
		if len(values) == 1 && least < 2 && g.IntN(2) == 0 {
			return values[0]
		}
		return values
	}
	op := ""
	switch g.IntN(4) {
	case 0:
		op = pick(g, "in", "not-in", "some-not-in", "all", "=", "==", "===", "!=", "!==")
		content["value"] = list(0, 3, func() any { return pick[any](g, "x", 0, false, true, 1e300, "") })
	case 1:
		op = pick(g, "gt", "gte", "lt", "lte", ">", ">=", "<", "<=")
		content["value"] = list(1, 1, bound)
	case 2:
		op = "between"
		content["value"] = list(2, 2, bound)
	default:
		op = pick(g, "wildcard", "filter")
		content = map[string]any{"fieldNames": []any{"a", "b"}[:1+g.IntN(2)], "value": list(1, 3, text)}
		if g.IntN(3) == 0 {
			content["entity"] = pick(g, "", "files")
		}
	}
	return map[string]any{"op": op, "content": content}
}

// mutate changes one place of a value.
func (g generator) mutate(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if len(v) > 0 && g.IntN(4) > 0 {
			name := pick(g, slices.Sorted(maps.Keys(v))...)
			out := maps.Clone(v)
			out[name] = g.mutate(v[name])
			return out
		}
		return g.mutateObject(maps.Clone(v))
	case []any:
		out := slices.Clone(v)
		if len(out) > 0 && g.IntN(4) > 0 {
			i := g.IntN(len(out))
			out[i] = g.mutate(out[i])
			return out
		}
		switch g.IntN(3) {
		case 0:
			return append(out, g.any())
		case 1:
			return out[:len(out)/2]
		default:
			return g.any()
		}
	default:
		return pick[any](g, g.any(), g.any(), []any{value}, map[string]any{"value": value})
	}
}

func (g generator) mutateObject(v map[string]any) any {
	names := slices.Sorted(maps.Keys(v))
	switch n := g.IntN(5); {
	case n == 0 || len(names) == 0:
		v[pick(g, "op", "content", "pivot", "fieldName", "fieldNames", "value", "entity", "field", "x")] = g.any()
	case n == 1:
		delete(v, pick(g, names...))
	case n == 2:
		from := pick(g, names...)
		to := pick(g, "op", "content", "pivot", "fieldName", "fieldNames", "value", "entity", "Op")
		v[from], v[to] = v[to], v[from]
	case n == 3:
		return g.any()
	default:
		return pick[any](g, []any{v}, map[string]any{"op": "and", "content": []any{v}}, map[string]any{"op": "in", "content": v})
	}
	return v
}

func (g generator) any() any {
	return pick[any](
		g, nil, true, false, 0, -1.5, "", ".", "x", "and", "not", "in", "=", "between", ">=", "filter", "wildcard", "IN", []any{},
		[]any{"x"}, []any{1, 2}, []any{nil}, []any{[]any{}}, []any{true}, []any{1}, map[string]any{}, map[string]any{"op": "and", "content": []any{}},
	)
}
