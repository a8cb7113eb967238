package graphql_test

import (
	"strings"
	"testing"

	"tutti/internal/index"
	"tutti/internal/search/catalogue/definition"
)

// warning is the part of a warning before the field name.
const warning = "warning "

// severalValues is the warning of a field with several values.
func severalValues(field string) string {
	return `{"code":"MULTIPLE_VALUES","message":"documents have several values in the field ` + field + `, which is not declared as a list: only the first is returned",
		"field":"` + field + `","hint":"set isArray for the field in extended.json"}`
}

// TestValues: documents may contain values of other types, and the engine accepts many of them.
func TestValues(t *testing.T) {
	fault := func(message, field, rest string) string {
		return `{"message":"` + message + `","locations":[{"line":1,"column":28}],"path":["analysis","hits","edges",0,"node","` + field + `"],
			"extensions":{"code":"INTERNAL_SERVER_ERROR"` + rest + `}}`
	}
	unfit := func(field, wanted string) string {
		return fault("a document has a value in the field "+field+" that is not "+wanted, field, "")
	}
	several := func(field string) string { return warning + field }
	for _, c := range []struct{ name, field, source, want, errors string }{
		{"a missing text", `studyId`, `{}`, `null`, ""},
		{"no text", `studyId`, `{"studyId":null}`, `null`, ""},
		{"a number as text", `studyId`, `{"studyId":1.50}`, `"1.50"`, ""},
		{"a boolean as text", `studyId`, `{"studyId":true}`, `"true"`, ""},
		{"an object as text", `studyId`, `{"studyId":{"a":1}}`, `null`, unfit("studyId", "a string")},
		{"one text in a list", `studyId`, `{"studyId":[null,["a\"\\"]]}`, `"a\"\\"`, ""},
		{"an empty list", `studyId`, `{"studyId":[]}`, `null`, ""},
		{"a list of nothing", `studyId`, `{"studyId":[null,[]]}`, `null`, ""},
		{"several texts", `studyId`, `{"studyId":["a","b"]}`, `"a"`, several("studyId")},
		{"several texts behind null", `studyId`, `{"studyId":[null,["a",null,"b"]]}`, `"a"`, several("studyId")},
		{"a text several times", `studyId`, `{"studyId":["a","a"]}`, `"a"`, several("studyId")},
		{"several numbers", `count`, `{"count":[3,"4"]}`, `3`, several("count")},
		{"several numbers, the first of them none", `count`, `{"count":["x",4]}`, `null`, unfit("count", "a number") + several("count")},
		{"several values under another name", `a:studyId b:studyId`, `{"studyId":["a","b"]}`, `"a","b":"a"`, several("studyId")},
		{
			"several values of nested elements", `files{hits{edges{node{name}}}}`, `{"files":[{"name":["f","g"]},{"name":["h","i"]}]}`,
			`{"hits":{"edges":[{"node":{"name":"f"}},{"node":{"name":"h"}}]}}`, several("files.name"),
		},
		{
			"several values of nested elements that are counted", `files{hits{total edges{node{name}}}}`, `{"files":[{"name":["f","g"]}]}`,
			`{"hits":{"total":1,"edges":[{"node":{"name":"f"}}]}}`, several("files.name"),
		},
		{"several values by a path", `experiment{lab{city}}`, `{"experiment.lab.city":["a","b"]}`, `{"lab":{"city":"a"}}`, several("experiment.lab.city")},
		{"the last of two members", `studyId`, `{"studyId":"a","studyId":"b"}`, `"b"`, ""},
		{"an escaped name", `studyId`, `{"study\u0049d":"a"}`, `"a"`, ""},
		{"white space", `studyId`, " {\n\"a\" : [ {} , \"}\" ] , \"studyId\" :\t\"b\" } ", `"b"`, ""},
		{"a text as number", `count`, `{"count":" 12.5 "}`, `12.5`, ""},
		{"a text as no number", `count`, `{"count":"0x1"}`, `null`, unfit("count", "a number")},
		{"a boolean as number", `count`, `{"count":true}`, `null`, unfit("count", "a number")},
		{"a huge number", `count`, `{"count":1e400}`, `null`, ""},
		{"a fraction as whole number", `small`, `{"small":-7.9}`, `-7`, ""},
		{"a text as whole number", `small`, `{"small":"8"}`, `8`, ""},
		{"a whole number with an exponent", `small`, `{"small":1e2}`, `100`, ""},
		{"a whole number that is too large", `small`, `{"small":3000000000}`, `null`, unfit("small", "a 32-bit integer")},
		{"a text as boolean", `open`, `{"open":"true"}`, `true`, ""},
		{"no text as boolean", `open`, `{"open":""}`, `false`, ""},
		{"a number as boolean", `open`, `{"open":1}`, `null`, unfit("open", "a boolean")},
		{"one value of a list", `tags`, `{"tags":"a"}`, `["a"]`, ""},
		{"lists in a list", `tags`, `{"tags":["a",["b",null],[]]}`, `["a","b",null]`, ""},
		{"no list", `tags`, `{"tags":null}`, `null`, ""},
		{"something else in a list", `tags`, `{"tags":["a",{}]}`, `["a",null]`, `{"message":"a document has a value in the field tags that is not a string",
			"locations":[{"line":1,"column":28}],"path":["analysis","hits","edges",0,"node","tags",1],"extensions":{"code":"INTERNAL_SERVER_ERROR"}}`},
		{"JSON", `info`, `{"info":[{"a": "\u00e9"}]}`, `[{"a":"é"}]`, ""},
		{"one object in a list", `experiment{platform}`, `{"experiment":[{"platform":"P"}]}`, `{"platform":"P"}`, ""},
		{"several objects", `experiment{platform}`, `{"experiment":[{"platform":"P"},{}]}`, `{"platform":"P"}`, several("experiment")},
		{"a text as object", `experiment{platform}`, `{"experiment":"P"}`, `null`, unfit("experiment", "an object")},
		{"one nested element", `files{hits{total edges{node{name}}}}`, `{"files":{"name":"f"}}`, `{"hits":{"total":1,"edges":[{"node":{"name":"f"}}]}}`, ""},
		{"no nested elements", `files{hits{total edges{node{name}}}}`, `{"files":[]}`, `{"hits":{"total":0,"edges":[]}}`, ""},
		{"nested elements that are nothing", `files{hits{total}}`, `{"files":[null,[{}]]}`, `{"hits":{"total":1}}`, ""},
		{"texts as nested elements", `files{hits{total}}`, `{"files":["f"]}`, `null`, unfit("files", "an object")},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.engine.answer = gives(1, index.Hit{ID: "a", Source: []byte(c.source)})
			name := strings.FieldsFunc(c.field, func(r rune) bool { return r == '{' || r == ':' })[0]
			want := `{"data":{"analysis":{"hits":{"edges":[{"node":{"` + name + `":` + c.want + `}}]}}}`
			errors, severalOf, warned := strings.Cut(c.errors, warning)
			if errors != "" {
				want += `,"errors":[` + errors + `]`
			}
			if warned {
				want += `,"extensions":{"warnings":[` + severalValues(severalOf) + `]}`
			}
			if c.name == "a huge number" { // no float of JSON's readers holds it: the text itself is looked at
				got := w.service.Execute(t.Context(), w.model, anonymous, ask(`{analysis{hits{edges{node{count}}}}}`))
				if string(got.Body) != `{"data":{"analysis":{"hits":{"edges":[{"node":{"count":1e400}}]}}}}` {
					t.Errorf("%s", got.Body)
				}
				return
			}
			w.answers(`{analysis{hits{edges{node{ `+c.field+`}}}}}`, want+`}`)
		})
	}
}

// TestWarningsOnce: a response warns once per field, however many documents have several values; the next response warns again.
func TestWarningsOnce(t *testing.T) {
	w := newWorld(t)
	row := func(id string) index.Hit {
		return index.Hit{ID: id, Source: []byte(`{"studyId":["a","b"],"count":[1,2]}`)}
	}
	w.engine.answer = gives(2, row("1"), row("2"))
	const node = `{"node":{"studyId":"a","count":1}}`
	for range 3 {
		w.answers(`{analysis{hits{edges{node{studyId count}}}}}`, `{"data":{"analysis":{"hits":{"edges":[`+node+`,`+node+`]}}},
			"extensions":{"warnings":[`+severalValues("studyId")+`,`+severalValues("count")+`]}}`)
	}
	w.engine.answer = gives(1, index.Hit{ID: "1", Source: []byte(`{"studyId":"a","count":1}`)})
	w.answers(`{analysis{hits{edges{node{studyId count}}}}}`, `{"data":{"analysis":{"hits":{"edges":[`+node+`]}}}}`)
	w.engine.reads, w.engine.answer = false, gives(1, row("1"))
	kept := 0
	w.engine.taken = func(int) { kept++ }
	w.answers(`{analysis{hits{edges{node{studyId count}}}}}`, `{"data":{"analysis":{"hits":{"edges":[`+node+`]}}},
		"extensions":{"warnings":[`+severalValues("studyId")+`,`+severalValues("count")+`]}}`)
	if kept != 1 {
		t.Errorf("%d documents were written while they were read", kept)
	}
}

func TestNestingPrefix(t *testing.T) {
	d := definition.Definition{ID: "d", DocumentType: "donor", Index: "records", NestingPrefix: "data.inner", MaxAliases: 15}
	w := &world{T: t, engine: &engine{}}
	w.over(d, `{"properties":{"data":{"properties":{"inner":{"properties":{"sex":{"type":"keyword"},"a":{"type":"keyword"},"b":{"type":"keyword"},"c":{"type":"keyword"}}}}}}}`)
	hit := index.Hit{ID: "1", Source: []byte(`{"sex":"no","data":{"sex":"no","inner":{"sex":"F","a":"A"}}}`)}
	other := index.Hit{ID: "2", Source: []byte(`{"data":[]}`)}
	w.engine.answer = gives(2, hit, other)
	w.answers(`{donor{hits{edges{node{id sex}}}}}`, `{"data":{"donor":{"hits":{"edges":[{"node":{"id":"1","sex":"F"}},{"node":{"id":"2","sex":null}}]}}}}`)
	if got := w.engine.reqs[0].Hits.Source.Paths; len(got) != 1 || got[0] != "data.inner.sex" {
		t.Errorf("asked for %v", got)
	}
	w.engine.answer = facets(map[string]index.FacetResult{"data.inner.sex": {Buckets: []index.Bucket{
		{Key: "F", Count: 1, TopHits: []index.Hit{hit, other}},
	}}})
	w.answers(`{donor{aggregations{sex{buckets{top_hits(_source:["a"],size:2)}}}}}`,
		`{"data":{"donor":{"aggregations":{"sex":{"buckets":[{"top_hits":[{"a":"A"},{}]}]}}}}}`)
}

// TestWideObjects: objects with many members and selections with many fields.
func TestWideObjects(t *testing.T) {
	w := newWorld(t)
	w.engine.answer = gives(1, index.Hit{ID: "a1", Source: []byte(`{"unknown":1,` + document[1:])})
	w.answers(`{analysis{hits{edges{node{a:id b:studyId c:analysisId d:count e:small f:ratio g:open h:created i:tags j:odd_name k:score
		id studyId analysisId count small ratio open created tags odd_name score note info experiment{platform} experiment{lab{city}} id}}}}}`,
		`{"data":{"analysis":{"hits":{"edges":[{"node":{"a":"a1","b":"S1","c":"a1","d":9007199254740993,"e":7,"f":0.5,"g":true,"h":"1483228800000","i":["x","y"],"j":"o","k":null,
		"id":"a1","studyId":"S1","analysisId":"a1","count":9007199254740993,"small":7,"ratio":0.5,"open":true,"created":"1483228800000","tags":["x","y"],"odd_name":"o","score":null,
		"note":"né","info":{"a":[1,2]},"experiment":{"platform":"ILLUMINA","lab":{"city":"Toronto"}}}}]}}}}`)
}
