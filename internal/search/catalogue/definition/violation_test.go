package definition_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/search/catalogue/definition"
)

// and is base.json with more members.
func and(members string) files {
	return files{"genes/base.json": strings.TrimSuffix(sound, "}") + ", " + members + "}"}
}

// beside is a sound base.json with another file.
func beside(text string) files { return files{"genes/base.json": sound, "genes/extended.json": text} }

func TestFaults(t *testing.T) {
	const (
		quotes = "put it into double quotes"
		flag   = "write true or false, without quotes"
		number = "write a number, without quotes"
		list   = "put it into square brackets"
		braces = "put it into braces"
	)
	tests := map[string]struct {
		files                  files
		pointer, message, hint string
	}{
		// Files.
		"comma at the end": {
			beside("{\n  \"extended\": [],\n}"), "",
			"genes/extended.json is not valid JSON at line 3, column 1: invalid character '}' looking for beginning of object key string",
			"remove the comma before it",
		},
		"comma missing": {
			beside("{\"é\": 1\n \"b\": 2}"), "",
			"genes/extended.json is not valid JSON at line 2, column 2: invalid character '\"' after object key:value pair",
			"a comma is missing before it",
		},
		"column in characters": {
			beside("{\"é\" x}"), "",
			"genes/extended.json is not valid JSON at line 1, column 6: invalid character 'x' after object key",
			"fix the file there",
		},
		"comment": {
			beside("// the fields\n{}"), "",
			"genes/extended.json is not valid JSON at line 1, column 1: invalid character '/' looking for beginning of value",
			"JSON has no comments: remove them",
		},
		"single quotes": {
			beside(`{'extended': []}`), "",
			`genes/extended.json is not valid JSON at line 1, column 2: invalid character '\'' looking for beginning of object key string`,
			"strings and keys need double quotes",
		},
		"line break in a text": {
			beside("{\"a\": \"b\nc\"}"), "",
			`genes/extended.json is not valid JSON at line 1, column 9: invalid character '\n' in string literal`,
			`a string cannot contain line breaks or tabs: write \n or \t`,
		},
		"cut": {
			beside("{\n\"extended\": [{"), "",
			"genes/extended.json is not valid JSON at line 2, column 15: unexpected end of JSON input",
			"a quote or a closing bracket is missing",
		},
		"two objects": {
			beside(`{} {}`), "",
			"genes/extended.json is not valid JSON at line 1, column 4: invalid character '{' after top-level value",
			"a file holds one object: put everything into it",
		},
		"empty file": {beside(" \n"), "", "genes/extended.json is empty", "write {} into it, or remove it"},
		"UTF-16":     {beside("\xFF\xFE{\x00}\x00"), "", "genes/extended.json is UTF-16, not UTF-8", "save it as UTF-8"},
		"not UTF-8": {
			beside("{\n\"a\": \"\xE9\"}"), "", "genes/extended.json is not valid UTF-8 at line 2, column 7", "save it as UTF-8",
		},
		"list at the root": {
			beside(`[]`), "", "genes/extended.json must be an object, not a list", "wrap it in an object, under its key",
		},
		"null at the root": {
			beside(`null`), "", "genes/extended.json must be an object, not null", "wrap it in an object, under its key",
		},
		"too deep": {
			beside(strings.Repeat(`{"a":`, 111) + "1" + strings.Repeat("}", 111)), "",
			"genes/extended.json has more than 110 levels of objects and lists", "remove what is not configuration",
		},
		"too large": {
			beside(`{"a": "` + strings.Repeat("x", 16<<20) + `"}`), "",
			"genes/extended.json is over 16 MiB", "a configuration is far smaller: put data elsewhere",
		},
		"too many values": {
			beside(`{"a": [` + strings.Repeat("1,", 500_000) + `1]}`), "",
			"genes holds more than 500,000 values", "a configuration is far smaller: put data elsewhere",
		},
		"at the top": {
			files{"base.json": sound, "extended.json": `[]`},
			"",
			"extended.json must be an object, not a list", "wrap it in an object, under its key",
		},

		// Keys that must be there.
		"nothing set": {
			files{"genes/base.json": `{"documentType": "", "esIndex": null}`},
			"",
			"genes/base.json does not set documentType and esIndex",
			`add "documentType": "<what a document of it is called>" and "esIndex": "<index or alias>" to it`,
		},
		"no documentType": {
			files{"genes/base.json": `{"esIndex": "genes"}`},
			"",
			"genes/base.json does not set documentType", `add "documentType": "<what a document of it is called>" to it`,
		},
		"no esIndex": {
			files{"genes/base.json": `{"documentType": "gene"}`},
			"",
			"genes/base.json does not set esIndex", `add "esIndex": "<index or alias>" to it`,
		},
		"no base.json": {
			files{"genes/extended.json": `{"extended": []}`},
			"",
			"genes/base.json is not there, and no other file sets documentType and esIndex",
			`add "documentType": "<what a document of it is called>" and "esIndex": "<index or alias>" to it`,
		},
		"access.json alone": {
			files{"genes/access.json": `{"field": "studyId", "scope": "{value}.READ"}`},
			"",
			"genes contains only access.json", "add base.json with documentType and esIndex",
		},
		"access.json alone at the top": {
			files{"access.json": `{"field": "studyId", "scope": "{value}.READ"}`},
			"",
			"the top folder contains only access.json", "add base.json with documentType and esIndex",
		},
		"access rule in another file": {
			files{"genes/base.json": sound, "genes/acces.json": `{"field": "studyId", "scope": "{value}.READ"}`},
			"",
			"genes/acces.json contains an access rule, which is valid only in access.json", "rename it to access.json",
		},

		// Types.
		"flag": {
			beside(`{"extended": [{"fieldName": "a"}, {"fieldName": "b"}, {"fieldName": "c"}, {"fieldName": "d", "isActive": "yes"}]}`),
			"/extended/3/isActive", "/extended/3/isActive in genes/extended.json must be true or false, not a string", flag,
		},
		"text":              {and(`"description": 5`), "/description", "/description in genes/base.json must be a string, not a number", quotes},
		"text and not true": {and(`"catalogId": true`), "/catalogId", "/catalogId in genes/base.json must be a string, not true", quotes},
		"count":             {and(`"maxAliases": "15"`), "/maxAliases", "/maxAliases in genes/base.json must be a whole number of 0 or more, not a string", number},
		"count below 0": {
			and(`"maxDepth": -1`), "/maxDepth", "/maxDepth in genes/base.json must be a whole number of 0 or more, not -1", "write another number",
		},
		"count with a fraction": {
			and(`"maxAliases": 1.5`), "/maxAliases", "/maxAliases in genes/base.json must be a whole number of 0 or more, not 1.5", "write another number",
		},
		"count beyond all": {
			and(`"maxAliases": 1e999`), "/maxAliases", "/maxAliases in genes/base.json must be a whole number of 0 or more, not 1e999", "write another number",
		},
		"number": {
			beside(`{"extended": [{"fieldName": "a", "rangeStep": "1"}]}`),
			"/extended/0/rangeStep", "/extended/0/rangeStep in genes/extended.json must be a number, not a string", number,
		},
		"number beyond all": {
			beside(`{"extended": [{"fieldName": "a", "rangeStep": 1e999}]}`),
			"/extended/0/rangeStep", "/extended/0/rangeStep in genes/extended.json must be a number, not 1e999", "write another number",
		},
		"list":           {beside(`{"extended": {}}`), "/extended", "/extended in genes/extended.json must be a list, not an object", list},
		"item":           {beside(`{"extended": ["a"]}`), "/extended/0", "/extended/0 in genes/extended.json must be an object, not a string", braces},
		"item of null":   {beside(`{"extended": [null]}`), "/extended/0", "/extended/0 in genes/extended.json must be an object, not null", "take it out of the list"},
		"facets":         {and(`"facets": []`), "/facets", "/facets in genes/base.json must be an object, not a list", braces},
		"aggregation":    {and(`"facets": {"aggregations": [{"fieldName": "a", "show": 1}]}`), "/facets/aggregations/0/show", "/facets/aggregations/0/show in genes/base.json must be true or false, not a number", flag},
		"old name":       {and(`"facets": {"aggregations": [{"fieldName": "a", "active": 1}]}`), "/facets/aggregations/0/active", "/facets/aggregations/0/active in genes/base.json must be true or false, not a number", flag},
		"column":         {and(`"table": {"columns": [{"fieldName": 1}]}`), "/table/columns/0/fieldName", "/table/columns/0/fieldName in genes/base.json must be a string, not a number", quotes},
		"order":          {and(`"table": {"defaultSorting": {"fieldName": "a"}}`), "/table/defaultSorting", "/table/defaultSorting in genes/base.json must be a list, not an object", list},
		"matchbox":       {and(`"matchbox": [{"searchFields": [1]}]`), "/matchbox/0/searchFields/0", "/matchbox/0/searchFields/0 in genes/base.json must be a string, not a number", quotes},
		"downloads":      {and(`"downloads": {"maxRows": true}`), "/downloads/maxRows", "/downloads/maxRows in genes/base.json must be a whole number of 0 or more, not true", number},
		"charts":         {and(`"charts": {"query": []}`), "/charts/query", "/charts/query in genes/base.json must be a string, not a list", quotes},
		"network":        {and(`"network": {"remoteNodes": [{"requests": {"headers": "Authorization"}}]}`), "/network/remoteNodes/0/requests/headers", "/network/remoteNodes/0/requests/headers in genes/base.json must be a list, not a string", list},
		"display values": {beside(`{"extended": [{"fieldName": "a", "displayValues": [1]}]}`), "/extended/0/displayValues", "/extended/0/displayValues in genes/extended.json must be an object, not a list", braces},
		"unused key":     {and(`"esPass": 1234`), "/esPass", "/esPass in genes/base.json must be a string, not a number", quotes},
		"wrong esIndex":  {files{"genes/base.json": `{"documentType": "gene", "index": 5}`}, "/index", "/index in genes/base.json must be a string, not a number", quotes},

		// Values.
		"no field name": {
			beside(`{"extended": [{"fieldName": "a"}, {"displayName": "B"}]}`),
			"/extended/1", "/extended/1 in genes/extended.json needs fieldName", "add the dotted path of the field as fieldName",
		},
		"index in capitals": {
			files{"genes/base.json": `{"documentType": "gene", "esIndex": "Genes"}`},
			"/esIndex", `/esIndex in genes/base.json: "Genes" is not the name of an index or an alias`,
			`write it in lower case, in 240 bytes at most, with none of \ / * ? " < > | , # : % or space, and no . - _ or + at the start`,
		},
		"index too long": {
			files{"genes/base.json": `{"documentType": "gene", "esIndex": "` + strings.Repeat("é", 128) + `"}`},
			"/esIndex", `/esIndex in genes/base.json: "` + strings.Repeat("é", 79) + `…" is not the name of an index or an alias`,
			`write it in lower case, in 240 bytes at most, with none of \ / * ? " < > | , # : % or space, and no . - _ or + at the start`,
		},
		"document type of GraphQL": {
			files{"genes/base.json": `{"documentType": "__type", "esIndex": "genes"}`},
			"/documentType", `/documentType in genes/base.json: "__type" would begin with __ in GraphQL, which reserves such names`, "begin it with a letter",
		},
		"document type of the endpoint": {
			files{"genes/base.json": `{"documentType": "sets", "esIndex": "genes"}`},
			"/documentType", `/documentType in genes/base.json: "sets" is a reserved field of every GraphQL endpoint`, "choose another name",
		},
		"prefix": {
			and(`"nestingPrefix": "data."`), "/nestingPrefix", `/nestingPrefix in genes/base.json: "data." is not a dotted path`,
			`write it like "data" or "envelope.payload"`,
		},
		"id with a line break": {
			and(`"catalogId": "a\nb"`), "/catalogId", "/catalogId in genes/base.json contains a control character",
			"set a short, readable catalogId in genes/base.json",
		},
		"id of dots": {
			and(`"catalogId": ".."`), "/catalogId", "/catalogId in genes/base.json must not be a relative path segment",
			"set a short, readable catalogId in genes/base.json",
		},
		"id too long": {
			and(`"catalogId": "` + strings.Repeat("a", 513) + `"`), "/catalogId", "/catalogId in genes/base.json has 513 bytes, the limit is 512",
			"set a short, readable catalogId in genes/base.json",
		},
		"folder with a control character": {
			files{"ge\tnes/base.json": sound},
			"", "the name of the folder ge_nes contains a control character",
			"set a short, readable catalogId in ge_nes/base.json",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := only(t, test.files)
			wantFault(t, d, test.pointer, test.message, test.hint)
		})
	}
}

func TestIndexNames(t *testing.T) {
	for name, valid := range map[string]bool{
		"genes": true, "file_centric_1.0": true, "1": true, "génes": true, "a-b+c": true,
		"Genes": false, ".kibana": false, "-a": false, "_all": false, "+a": false, "a b": false, "a,b": false, "a*": false,
		"a/b": false, `a\\b`: false, "a?b": false, "<a>": false, "a|b": false, "a#b": false, "a:b": false, "..": false,
		"100%": false, "a\u00a0b": false, "a\u200bb": false, `a\u0000b`: false, "Étude": false, "\u01c5": false, "\U0001d400": false,
		strings.Repeat("a", 240): true, strings.Repeat("a", 241): false, strings.Repeat("é", 120): true, strings.Repeat("é", 120) + "a": false,
	} {
		t.Run(name, func(t *testing.T) {
			d := only(t, files{"base.json": `{"documentType": "gene", "esIndex": "` + name + `"}`})
			if (d.Err == nil) != valid {
				t.Errorf("fault %v", d.Err)
			}
		})
	}
}

func TestEveryFaultIsTold(t *testing.T) {
	d := only(t, files{
		"base.json":     `{"documentType": "__a", "esIndex": "A", "maxDepth": "5"}`,
		"extended.json": `{"extended": [{"fieldName": 1}, {}]}`,
		"table.json":    `{"table": `,
	})
	var got []string
	for _, v := range d.Err.Violations {
		got = append(got, v.Pointer)
	}
	if want := " /extended/0/fieldName /maxDepth /documentType /esIndex /extended/0 /extended/1"; strings.Join(got, " ") != want {
		t.Errorf("violations at %q, want %q", strings.Join(got, " "), want)
	}
	many := only(t, files{"base.json": sound, "extended.json": `{"extended": [` + strings.Repeat("1,", 999) + `1]}`})
	if len(many.Err.Violations) != 50 {
		t.Errorf("%d violations", len(many.Err.Violations))
	}
}

func TestWhatIsTolerated(t *testing.T) {
	tests := map[string]files{
		"byte order mark":     {"base.json": "\uFEFF" + sound},
		"null":                and(`"description": null, "maxDepth": null, "extended": null, "facets": null, "network": null, "enableSets": null, "matchbox": null`),
		"empty":               and(`"description": "", "catalogId": " ", "nestingPrefix": "", "displayName": "", "facets": "", "charts": {"query": ""}`),
		"null inside":         and(`"extended": [{"fieldName": "a", "unit": null, "rangeStep": null, "isActive": null, "displayValues": null}]`),
		"number with a point": and(`"maxAliases": 15.0, "maxDepth": 1e1`),
		"templates": {
			"base.json": sound, "charts.json": `{"charts": {"query": ""}}`, "extended.json": `{"extended": []}`,
			"facets.json": `{"facets": {"aggregations": []}}`, "matchbox.json": `{"matchbox": []}`,
			"network.json": `{"network": {"remoteRequests": {"headers": []}, "remoteNodes": [{"displayName": "", "documentType": "",
				"graphqlUrl": "", "nodeId": "", "requests": {"headers": []}}], "localNode": {"displayName": "", "nodeId": ""}}}`,
			"table.json": `{"table": {"columns": [], "defaultSorting": [], "maxResultsWindow": 10000, "rowIdFieldName": ""}}`,
		},
	}
	for name, f := range tests {
		t.Run(name, func(t *testing.T) {
			d := only(t, f)
			if d.Err != nil {
				t.Fatal(d.Err)
			}
			if d.Description != "" || d.NestingPrefix != "" || d.MaxAliases != 15 || d.EnableSets {
				t.Errorf("%+v", d)
			}
		})
	}
	if d := only(t, and(`"facets": "", "table": null, "extended": null`)); d.Facets != nil || d.Table != nil || d.Extended != nil {
		t.Errorf("what says nothing is absent: %+v", d)
	}
}

func TestWarnings(t *testing.T) {
	tests := map[string]struct {
		files files
		want  []string
	}{
		"none": {files{"base.json": sound}, nil},
		"unknown key": {
			and(`"tabel": {}, "somethingElse": 1`),
			[]string{
				"/tabel in genes/base.json is unknown and ignored; the nearest known key is table",
				"/somethingElse in genes/base.json is unknown and ignored",
			},
		},
		"unknown key inside": {
			beside(`{"extended": [{"fieldName": "a", "displayname": "A"}, {"fieldName": "b", "displayname": "B"}, {"fieldName": "c", "x/y~\n": 1}]}`),
			[]string{
				"/extended/0/displayname in genes/extended.json is unknown and ignored; the nearest known key is displayName (and 1 more like it)",
				"/extended/2/x~1y~0_ in genes/extended.json is unknown and ignored",
			},
		},
		"old names": {
			files{
				"genes/base.json":   `{"documentType": "gene", "index": "genes"}`,
				"genes/facets.json": `{"facets": {"aggregations": [{"field": "a", "active": true}, {"fieldName": "b", "active": true}, {"fieldName": "c", "active": false, "isActive": true}]}}`,
			},
			[]string{
				"/facets/aggregations/0/field in genes/facets.json is an old name of fieldName, and read as it",
				"/facets/aggregations/0/active in genes/facets.json is an old name of isActive, and read as it (and 1 more like it)",
				"/facets/aggregations/2/active in genes/facets.json is an old name of isActive, which is set too: it is ignored",
				"/index in genes/base.json is an old name of esIndex, and read as it",
			},
		},
		"set twice": {
			beside(`{"extended": [{"fieldName": "a", "fieldName": "b"}], "extended": [{"fieldName": "c", "unit": "1", "unit": "2"}]}`),
			[]string{
				"/extended/0/fieldName in genes/extended.json is set twice: the later one applies",
				"/extended/0/unit in genes/extended.json is set twice: the later one applies",
				"/extended in genes/extended.json is set twice: the later one applies",
			},
		},
		"field described twice": {
			beside(`{"extended": [{"fieldName": "a"}, {"fieldName": "b"}, {"fieldName": "a"}]}`),
			[]string{`/extended/2/fieldName in genes/extended.json: "a" is described twice: the later one applies`},
		},
		"not a name of GraphQL": {
			files{"genes/base.json": `{"documentType": "1st gene-é", "esIndex": "genes"}`},
			[]string{`/documentType in genes/base.json: "1st gene-é" is not a GraphQL name, and becomes _1st_gene__`},
		},
		"not used": {
			and(`"esHost": "http://es:9200", "esUser": "", "esPass": "secret", "disablePlayground": true, "enableDebug": false, "sets": {"index": "a"}`),
			[]string{
				"/esHost in genes/base.json is not used: tutti's own configuration says how the engine is reached",
				"/esPass in genes/base.json is not used: tutti's own configuration says how the engine is reached",
				"/disablePlayground in genes/base.json has no effect here",
				"/sets in genes/base.json has no effect here",
			},
		},
		"no field names": {
			and(`"facets": {"aggregations": [{"show": true}, {"fieldName": ""}]}, "table": {"columns": [{"fieldName": "a"}, {}], "defaultSorting": [{}]}`),
			[]string{
				"/facets/aggregations/0 in genes/base.json has no fieldName and is not shown (and 1 more like it)",
				"/table/columns/1 in genes/base.json has no fieldName and is not shown",
				"/table/defaultSorting/0 in genes/base.json has no fieldName and is not shown",
			},
		},
		"remote nodes": {
			and(`"network": {"remoteNodes": [{"displayName": "a", "documentType": "b"}, {"displayName": "a", "documentType": "b", "graphqlUrl": "https://a.example.org/graphql"}]}`),
			[]string{"/network/remoteNodes/0 in genes/base.json has no graphqlUrl and cannot be queried"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := only(t, test.files)
			if d.Err != nil {
				t.Fatal(d.Err)
			}
			if got, want := strings.Join(d.Warnings, "\n"), strings.Join(test.want, "\n"); got != want {
				t.Errorf("warnings\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestOldNamesAreRead(t *testing.T) {
	d := only(t, files{
		"base.json":   `{"documentType": "gene", "index": "genes", "extended": [{"field": "a", "active": true}]}`,
		"facets.json": `{"facets": {"aggregations": [{"active": true, "field": "a__b", "show": true}]}}`,
	})
	if d.Err != nil || d.Index != "genes" || len(d.Extended) != 1 || d.Extended[0].FieldName != "a" || !*d.Extended[0].IsActive {
		t.Errorf("%+v", d)
	}
	if got, want := string(d.Facets), `{"aggregations":[{"isActive":true,"fieldName":"a__b","show":true}]}`; got != want {
		t.Errorf("facets %s, want %s", got, want)
	}
}

func TestLaterDescriptionCounts(t *testing.T) {
	d := only(t, beside(`{"extended": [{"fieldName": "a", "unit": "m", "displayName": "A"}, {"fieldName": "b"}, {"fieldName": "a", "unit": "km"}]}`))
	if len(d.Extended) != 2 {
		t.Fatalf("%+v", d.Extended)
	}
	a, _ := d.Extension("a")
	if diff := cmp.Diff(definition.ExtendedField{FieldName: "a", Unit: "km"}, a); diff != "" {
		t.Errorf("want, got: %s", diff)
	}
}

func TestTooManyFiles(t *testing.T) {
	f := files{"genes/base.json": sound}
	for i := range 1000 {
		f[fmt.Sprintf("genes/document%d.json", i)] = "{}"
	}
	wantFault(t, only(t, f), "", "genes holds more than 1000 JSON files", "move what is not configuration elsewhere")
	delete(f, "genes/document7.json")
	if d := only(t, f); d.Err != nil {
		t.Error(d.Err)
	}
}

func TestManyWarnings(t *testing.T) {
	var text strings.Builder
	for i := range 80 {
		text.WriteString(`, "` + strings.Repeat("ab", i+20) + `": 1`)
	}
	d := only(t, and(text.String()[2:]))
	if len(d.Warnings) != 51 || d.Warnings[50] != "30 more warnings are not listed" {
		t.Errorf("%d warnings, the last %q", len(d.Warnings), d.Warnings[len(d.Warnings)-1])
	}
}
