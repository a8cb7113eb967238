package schemas_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"tutti/internal/core"
	"tutti/schemas"
)

func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"http://a/{value}", "https://a.example/x/{study}?v={value}", "http://a/.{value}", "http://a?{study}", "http://a/{x}"} {
		f.Add(seed, "S1", "..")
		f.Add(seed, "a/b", "x?y#z&{study}%2e")
	}
	f.Fuzz(func(t *testing.T, template, study, value string) {
		fill, err := schemas.ParseTemplate(template)
		if err != nil {
			return
		}
		plain, err := fill("s", "v")
		if err != nil {
			return
		}
		filled, err := fill(study, value)
		if err != nil {
			return
		}
		want, err := url.Parse(plain)
		if err != nil {
			t.Fatalf("%q gives %q, which is no URL: %v", template, plain, err)
		}
		got, err := url.Parse(filled)
		if err != nil {
			t.Fatalf("%q gives %q, which is no URL: %v", template, filled, err)
		}
		if got.Scheme != want.Scheme || got.Host != want.Host || got.User != nil || got.Fragment != "" {
			t.Errorf("%q with %q and %q asks %q", template, study, value, filled)
		}
		if strings.Count(got.EscapedPath(), "/") != strings.Count(want.EscapedPath(), "/") {
			t.Errorf("%q with %q and %q has another path: %q", template, study, value, filled)
		}
		joined, _ := url.JoinPath(filled)
		clean, _ := url.Parse(joined)
		before, _ := url.JoinPath(plain)
		cleanBefore, _ := url.Parse(before)
		if clean != nil && cleanBefore != nil && strings.Count(clean.EscapedPath(), "/") != strings.Count(cleanBefore.EscapedPath(), "/") {
			t.Errorf("%q with %q and %q climbs: %q", template, study, value, filled)
		}
	})
}

func FuzzJSONPath(f *testing.F) {
	for _, seed := range []string{"a.b[0]", "$.a[*]['x y']", "$['$'][\"it's\"]", "$", "a..b", "a[-1]", "ä.ö"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		full, err := schemas.Canonical(path)
		if err != nil {
			return
		}
		again, err := schemas.Canonical(full)
		if err != nil || again != full {
			t.Errorf("%q is %q, and that is %q, %v", path, full, again, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-0.5e3,true,null,"\u00e4\n"]}`, `"\ud800"`, `[1,]`, `{"a":1,"a":2}`, `01`, `-`, `"\x"`, "\"\t\"", " 1 ", "1 2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		err := schemas.Parse(text)
		if err == nil && !json.Valid([]byte(text)) {
			t.Errorf("%q is read, but is not JSON", text)
		}
		if err != nil && json.Valid([]byte(text)) && utf8.ValidString(text) {
			for _, known := range []string{"stands twice", "nested more than", "a number is too", "more than 1000000 values"} {
				if strings.Contains(err.Error(), known) {
					return
				}
			}
			t.Errorf("%q is JSON, but is not read: %v", text, err)
		}
	})
}

func FuzzValidate(f *testing.F) {
	f.Add(simple, analysis("a", ""))
	f.Add(dynamic(`,"d":{"$ref":"#/definitions/n"}`, `,"definitions":{"n":{"items":{"$ref":"#/definitions/n"}}}`), analysis("a", `,"d":[[[1]]]`))
	f.Add(dynamic(`,"d":{"oneOf":[{"pattern":"^(?!x)"},{"multipleOf":0.1}]}`, ""), analysis("a", `,"d":1e300`))
	f.Add(`{"$schema":"https://json-schema.org/draft/2020-12/schema",`+dynamic("", `,"unevaluatedProperties":false`)[1:], analysis("a", `,"d":0`))
	f.Add(`{"$id":"http://json-schema.org/draft-07/schema",`+dynamic(`,"d":{"$ref":"#/$defs/x"}`, "")[1:], analysis("a", ``))
	f.Fuzz(func(t *testing.T, schema, body string) {
		s, err := schemas.New(&fakeStore{}, schemas.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Register(t.Context(), []byte(`{"name":"a","schema":`+schema+`}`)); err != nil {
			if core.CodeOf(err) != core.CodeInvalid {
				t.Fatalf("registering %s: %v", schema, err)
			}
			return
		}
		if _, err := s.Validate(t.Context(), "S1", body); err != nil {
			switch core.CodeOf(err) {
			case core.CodeInvalid, core.CodeNotFound, core.CodeConflict:
			default:
				t.Fatalf("validating %s by %s: %v", body, schema, err)
			}
		}
	})
}
