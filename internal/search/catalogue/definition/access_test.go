package definition_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/filter/sqon"
	"tutti/internal/search/catalogue/definition"
)

func guarded(rule string) files { return files{"base.json": sound, "access.json": rule} }

func TestAccessRule(t *testing.T) {
	open := &sqon.Filter{Root: &sqon.Node{
		Op: sqon.In, Fields: []string{"access"}, Values: []sqon.Value{{Text: "open"}},
	}}
	tests := map[string]struct {
		rule string
		want definition.AccessRule
	}{
		"nothing is public":  {`{"field": "studyId", "scope": "{value}.READ"}`, definition.AccessRule{Field: "studyId", Scope: "{value}.READ"}},
		"null":               {`{"field": "studyId", "scope": "{value}.READ", "public": null}`, definition.AccessRule{Field: "studyId", Scope: "{value}.READ"}},
		"all is public":      {`{"field": "studyId", "scope": "{value}.READ", "public": {}}`, definition.AccessRule{Field: "studyId", Scope: "{value}.READ", Public: &sqon.Filter{}}},
		"an or of nothing":   {`{"field": "studyId", "scope": "{value}.READ", "public": {"op": "or", "content": []}}`, definition.AccessRule{Field: "studyId", Scope: "{value}.READ", Public: &sqon.Filter{Root: &sqon.Node{Op: sqon.Or, Content: []*sqon.Node{}}}}},
		"something":          {`{"field": "a.study", "scope": "x:{value}", "public": {"op": "in", "content": {"fieldName": "access", "value": "open"}}}`, definition.AccessRule{Field: "a.study", Scope: "x:{value}", Public: open}},
		"value alone":        {`{"field": "studyId", "scope": "{value}"}`, definition.AccessRule{Field: "studyId", Scope: "{value}"}},
		"unicode, with mark": {"\uFEFF" + `{"field": "étude", "scope": "{value}.LIRE"}`, definition.AccessRule{Field: "étude", Scope: "{value}.LIRE"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := only(t, guarded(test.rule))
			if d.Err != nil || d.Warnings != nil {
				t.Fatalf("fault %v, warnings %v", d.Err, d.Warnings)
			}
			if diff := cmp.Diff(&test.want, d.Access, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Pointer" }, cmp.Ignore())); diff != "" {
				t.Errorf("want, got: %s", diff)
			}
		})
	}
	if d := only(t, files{"base.json": sound}); d.Access != nil {
		t.Errorf("no rule, but %+v", d.Access)
	}
	if d := only(t, files{"base.json": sound, "ACCESS.Json": `{"field": "studyId", "scope": "{value}.READ"}`}); d.Access == nil || d.Access.Field != "studyId" {
		t.Errorf("a rule counts whatever the case of its file's name: %+v", d)
	}
}

// TestAccessDepth: the file accepts every filter of the language; for one that is too deep the error is that of the language.
func TestAccessDepth(t *testing.T) {
	rule := func(levels int) string {
		return `{"field": "studyId", "scope": "{value}.READ", "public": ` + strings.Repeat(`{"op":"not","content":[`, levels-1) +
			`{"op":"in","content":{"fieldName":"access","value":["open"]}}` + strings.Repeat(`]}`, levels-1) + `}`
	}
	if d := only(t, guarded(rule(sqon.MaxDepth))); d.Err != nil || d.Access == nil || d.Access.Public == nil {
		t.Errorf("at %d levels: %v, %+v", sqon.MaxDepth, d.Err, d.Access)
	}
	d := only(t, guarded(rule(sqon.MaxDepth+1)))
	if d.Err == nil || d.Err.Code != core.CodeInvalid || !strings.HasSuffix(d.Err.Message, "access.json is not a filter: the filter is more than 50 levels deep") {
		t.Errorf("at %d levels: %v", sqon.MaxDepth+1, d.Err)
	}
}

func TestAccessFaults(t *testing.T) {
	const like = `write it like "{value}.READ"`
	tests := map[string]struct {
		rule                   string
		pointer, message, hint string
	}{
		"broken": {
			`{"field": "studyId",`, "",
			"access.json is not valid JSON at line 1, column 21: unexpected end of JSON input", "a quote or a closing bracket is missing",
		},
		"empty":    {``, "", "access.json is empty", "write {} into it, or remove it"},
		"list":     {`[]`, "", "access.json must be an object, not a list", "wrap it in an object, under its key"},
		"nothing":  {`{}`, "", "access.json does not set field", `add "field": "<the path whose values scopes name>", such as "studyId"`},
		"no field": {`{"scope": "{value}.READ", "public": {}}`, "", "access.json does not set field", `add "field": "<the path whose values scopes name>", such as "studyId"`},
		"no scope": {`{"field": "studyId", "scope": ""}`, "", "access.json does not set scope", `add "scope": "{value}.READ"`},
		"field of a wrong type": {
			`{"field": ["studyId"], "scope": "{value}.READ"}`, "/field", "/field in access.json must be a string, not a list", "put it into double quotes",
		},
		"scope of a wrong type": {
			`{"field": "studyId", "scope": true}`, "/scope", "/scope in access.json must be a string, not true", "put it into double quotes",
		},
		"field with a space": {
			`{"field": "study id", "scope": "{value}.READ"}`, "/field", `/field in access.json: "study id" is not the path of a field`, `write a dotted path such as "studyId"`,
		},
		"field with an end missing": {
			`{"field": "study.", "scope": "{value}.READ"}`, "/field", `/field in access.json: "study." is not the path of a field`, `write a dotted path such as "studyId"`,
		},
		"scope without a value":  {`{"field": "studyId", "scope": "READ"}`, "/scope", `/scope in access.json: "READ" must hold {value} exactly once`, like},
		"scope with two values":  {`{"field": "studyId", "scope": "{value}.{value}"}`, "/scope", `/scope in access.json: "{value}.{value}" must hold {value} exactly once`, like},
		"scope with another one": {`{"field": "studyId", "scope": "{value}.{x}"}`, "/scope", `/scope in access.json: "{value}.{x}" contains a space, a star, a bracket or a control character, which a scope cannot contain`, like},
		"scope with a space":     {`{"field": "studyId", "scope": "{value} READ"}`, "/scope", `/scope in access.json: "{value} READ" contains a space, a star, a bracket or a control character, which a scope cannot contain`, like},
		"unknown key": {
			`{"field": "studyId", "scope": "{value}.READ", "publc": {}}`, "/publc", "/publc in access.json is unknown", "the nearest known key is public",
		},
		"another unknown key": {
			`{"field": "studyId", "scope": "{value}.READ", "everybody": {}}`, "/everybody", "/everybody in access.json is unknown",
			"remove it: a rule has only field, scope and public",
		},
		"set twice": {
			`{"field": "studyId", "scope": "{value}.READ", "public": {}, "public": null}`, "/public", "/public in access.json is set twice", "keep one of them",
		},
		"filter": {
			`{"field": "studyId", "scope": "{value}.READ", "public": {"op": "xor", "content": []}}`, "/public/op",
			`/public/op in access.json is not a filter: unknown op "xor", did you mean "or"?`, "fix the filter; null shows nothing to everyone, {} everything",
		},
		"filter that is none": {
			`{"field": "studyId", "scope": "{value}.READ", "public": "all"}`, "/public",
			"/public in access.json is not a filter: a filter must be an object, not a string", "fix the filter; null shows nothing to everyone, {} everything",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := only(t, guarded(test.rule))
			wantFault(t, d, test.pointer, test.message, test.hint)
			if d.Access == nil || *d.Access != (definition.AccessRule{}) {
				t.Errorf("a rule with a fault must deny everyone: %+v", d.Access)
			}
		})
	}
	t.Run("list with a key set twice", func(t *testing.T) {
		if d := only(t, guarded(`[{"field": "a", "field": "b"}]`)); len(d.Err.Violations) != 1 || d.Err.Message != "access.json must be an object, not a list" {
			t.Errorf("%+v", d.Err.Violations)
		}
	})
	t.Run("broken and alone", func(t *testing.T) {
		if d := only(t, files{"access.json": ""}); len(d.Err.Violations) != 1 || d.Err.Message != "access.json is empty" {
			t.Errorf("%+v", d.Err.Violations)
		}
	})
	t.Run("two rules", func(t *testing.T) {
		d := only(t, files{"base.json": sound, "ACCESS.JSON": `{"field": "a", "scope": "{value}"}`, "access.json": `{"field": "b", "scope": "{value}"}`})
		wantFault(t, d, "", "access.json is a second access rule in the same folder", "keep one of them, as access.json")
		if *d.Access != (definition.AccessRule{}) {
			t.Errorf("%+v", d.Access)
		}
	})
	t.Run("one catalogue alone", func(t *testing.T) {
		set := load(t, files{"a/base.json": sound, "a/access.json": "{", "b/base.json": sound}, definition.Options{})
		if a, b := named(t, set, "a"), named(t, set, "b"); a.Err == nil || b.Err != nil || b.Access != nil {
			t.Errorf("%+v", set)
		}
	})
}
