package sqon_test

import (
	"errors"
	"fmt"

	"tutti/internal/core"
	"tutti/internal/filter/sqon"
)

func ExampleParse() {
	f, err := sqon.Parse([]byte(`{"op": ">=", "content": {"fieldName": "age", "value": [40]}}`))
	fmt.Println(string(f.AppendJSON(nil)), err)

	_, err = sqon.Parse([]byte(`{"op": "and", "content": [{"op": "in", "content": {"field": "age", "value": 40}}]}`))
	if e, ok := errors.AsType[*core.Error](err); ok {
		for _, v := range e.Violations {
			fmt.Printf("%s: %s\n", v.Pointer, v.Message)
		}
	}
	// Output:
	// {"op":"gte","content":{"fieldName":"age","value":40}} <nil>
	// /content/0/content/field: unknown member "field", did you mean "fieldName"?
	// /content/0/content: fieldName is missing
}

func ExampleFilter_Check() {
	fields := catalogue{"age": {Type: "long"}, "sex": {Type: "keyword"}}
	f, err := sqon.Parse([]byte(`{"op": "or", "content": [
		{"op": "in", "content": {"fieldName": "agee", "value": 40}},
		{"op": "gt", "content": {"fieldName": "sex", "value": 40}},
		{"op": "in", "content": {"fieldName": "age", "value": ["40", "forty"]}}
	]}`))
	if err != nil {
		fmt.Println(err)
	}
	if e, ok := errors.AsType[*core.Error](f.Check(fields)); ok {
		for _, v := range e.Violations {
			fmt.Printf("%s: %s\n", v.Pointer, v.Message)
		}
	}
	// Output:
	// /content/0/content/fieldName: unknown field "agee", did you mean "age"?
	// /content/1/op: "gt" does not apply to the field "sex" of type keyword, which takes in, not-in, some-not-in, all, filter
	// /content/2/content/value/1: "forty" is not a number
}

func ExampleFilter_Hoist() {
	fields := small()
	f, err := sqon.Parse([]byte(`{"op": "and", "pivot": "files", "content": [
		{"op": "in", "content": {"fieldName": "files.type", "value": "bam"}},
		{"op": "in", "content": {"fieldName": "sex", "value": "F"}}
	]}`))
	if err != nil {
		fmt.Println(err)
	}
	hoisted, err := f.Hoist(fields)
	fmt.Println(string(hoisted.AppendJSON(nil)), err)
	// Output:
	// {"op":"and","content":[{"op":"in","content":{"fieldName":"sex","value":["F"]}},{"op":"in","pivot":"files","content":{"fieldName":"files.type","value":["bam"]}}]} <nil>
}

func ExampleEscape() {
	for _, text := range []string{"HLA-A*02:01", `C:\data`, "why?"} {
		escaped := sqon.Escape(text)
		fmt.Println(escaped, sqon.Value{Text: escaped}.Term().Text == text)
	}
	// Output:
	// HLA-A\*02:01 true
	// C:\\data true
	// why\? true
}
