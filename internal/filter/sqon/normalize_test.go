package sqon_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tutti/internal/filter/sqon"
)

func TestNormalize(t *testing.T) {
	const a, b, c = `{"op":"in","content":{"fieldName":"sex","value":["a"]}}`, `{"op":"in","content":{"fieldName":"sex","value":["b"]}}`,
		`{"op":"in","content":{"fieldName":"files.type","value":["c"]}}`
	and := func(inner string) string { return `{"op":"and","content":[` + inner + `]}` }
	or := func(inner string) string { return `{"op":"or","content":[` + inner + `]}` }
	not := func(inner string) string { return `{"op":"not","content":[` + inner + `]}` }
	pivot := func(op, inner string) string { return `{"op":"` + op + `","pivot":"files","content":[` + inner + `]}` }
	for name, tt := range map[string]struct{ text, want string }{
		"everything":              {`{}`, `{}`},
		"an empty and":            {and(``), `{}`},
		"ands of nothing":         {and(and(``) + `,null,{}`), `{}`},
		"an empty or":             {or(``), or(``)},
		"an empty not":            {not(``), `{}`},
		"a not of empty ors":      {not(or(``)), `{}`},
		"a not of everything":     {not(`{}`), not(and(``))},
		"one member":              {or(and(a)), a},
		"nested ands":             {and(a + `,` + and(b+`,`+and(c))), and(a + `,` + b + `,` + c)},
		"nested ors":              {or(or(a+`,`+b) + `,` + c), or(a + `,` + b + `,` + c)},
		"and in or":               {or(and(a+`,`+b) + `,` + c), or(and(a+`,`+b) + `,` + c)},
		"nothing in an or":        {or(or(``) + `,` + a), a},
		"nothing in an and":       {and(or(``) + `,` + a), and(or(``) + `,` + a)},
		"everything in an or":     {or(`{},` + a), or(and(``) + `,` + a)},
		"a not of a not":          {not(not(a)), a},
		"a not of a not of two":   {not(not(a + `,` + b)), or(a + `,` + b)},
		"a not of a not and more": {not(not(a) + `,` + b), not(not(a) + `,` + b)},
		"a not of an or":          {not(or(a + `,` + b)), not(a + `,` + b)},
		"a not of an and":         {not(and(a + `,` + b)), not(and(a + `,` + b))},
		"three nots":              {not(not(not(a))), not(a)},
		"values twice":            {`{"op":"in","content":{"fieldName":"sex","value":["a",1,"b","a","1",1]}}`, `{"op":"in","content":{"fieldName":"sex","value":["a",1,"b","1"]}}`},
		"bounds twice":            {`{"op":"between","content":{"fieldName":"age","value":[1,1]}}`, `{"op":"between","content":{"fieldName":"age","value":[1,1]}}`},
		"names twice":             {`{"op":"filter","content":{"fieldNames":["a","b","a"],"value":["x","x"]}}`, `{"op":"wildcard","content":{"fieldNames":["a","b"],"value":"x"}}`},
		"a pivot stays":           {and(pivot("and", c) + `,` + a), and(pivot("and", c) + `,` + a)},
		"an empty pivot stays":    {and(pivot("not", ``)), pivot("and", ``)},
		"a pivot's only member":   {pivot("or", c), pivot("and", c)},
		"a pivot's only group":    {pivot("and", or(c+`,`+a)), pivot("or", c+`,`+a)},
		"a pivot's two nots":      {pivot("not", not(c+`,`+a)), pivot("or", c+`,`+a)},
		"not of a pivot":          {not(pivot("not", c)), not(pivot("not", c))},
		"ands in a pivot":         {pivot("and", a+`,`+and(b+`,`+c)), pivot("and", a+`,`+b+`,`+c)},
		"the same pivot further in": {
			pivot("and", a+`,{"op":"or","pivot":"files.index","content":[`+b+`,`+pivot("or", a+`,`+c)+`]}`),
			pivot("and", a+`,{"op":"or","pivot":"files.index","content":[`+b+`,`+a+`,`+c+`]}`),
		},
		"the same pivot inside": {pivot("and", a+`,`+or(b+`,`+pivot("or", a+`,`+c))), pivot("and", a+`,`+or(b+`,`+a+`,`+c))},
	} {
		t.Run(name, func(t *testing.T) {
			f := parsed(t, tt.text)
			before := printed(f)
			if got := printed(f.Normalize()); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
			if printed(f) != before {
				t.Error("the filter itself was changed")
			}
		})
	}
}

func TestNormalizeKeepsPointers(t *testing.T) {
	f := parsed(t, `{"op":"and","content":[null,{"op":"and","content":[`+clauseOf("in", "sex", `1`)+`,`+clauseOf("in", "age", `1`)+`]}]}`)
	root := f.Normalize().Root
	if got := root.Content[1].Pointer; got != "/content/1/content/1" {
		t.Error(got)
	}
}

func TestNormalizeLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := sqon.Filter{Root: filters(5).Draw(t, "filter")}
		document := documents().Draw(t, "document")
		once := f.Normalize()
		if got, want := found(once, document), found(f, document); got != want {
			t.Errorf("%s became %s: %t, want %t", printed(f), printed(once), got, want)
		}
		if twice := once.Normalize(); printed(twice) != printed(once) {
			t.Errorf("%s, once %s, twice %s", printed(f), printed(once), printed(twice))
		}
		if strings.Count(printed(once), `"op"`) > strings.Count(printed(f), `"op"`) {
			t.Errorf("%s became larger: %s", printed(f), printed(once))
		}
	})
}

func TestPrintLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := sqon.Filter{Root: filters(5).Draw(t, "filter")}
		for _, f := range []sqon.Filter{f, f.Normalize()} {
			again, err := sqon.Parse(f.AppendJSON(nil))
			if err != nil {
				t.Fatalf("%s: %v", printed(f), err)
			}
			if diff := cmp.Diff(bare(f.Root), bare(again.Root)); diff != "" {
				t.Errorf("%s is read as another: %s", printed(f), diff)
			}
			if printed(again) != printed(f) {
				t.Errorf("%s is printed as %s", printed(f), printed(again))
			}
		}
	})
}
