package schemas_test

import (
	"testing"

	"tutti/internal/core"
	"tutti/schemas"
)

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
