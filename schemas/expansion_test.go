package schemas_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/schemas"
)

// TestExpansion: a schema that the library would take hours for is refused, and a recursive one that it takes little for is not.
func TestExpansion(t *testing.T) {
	const twice = " | $ref | recurses to the same part of a value in two ways, so that the number of checks would double at each level"
	const n = "/schema/definitions/n" + twice
	const large = "/schema | schema | leads to more than 100000 schemas, where a $ref counts each time it is reached"
	doubling := func(keyword, end string) string {
		var all strings.Builder
		for i := range 40 {
			fmt.Fprintf(&all, `"d%d":{"%s":[{"$ref":"#/definitions/d%d"},{"$ref":"#/definitions/d%d"}]},`, i, keyword, i+1, i+1)
		}
		return `"n":{"$ref":"#/definitions/d0"},` + all.String() + `"d40":` + end
	}
	chain := func(length int) string {
		var all strings.Builder
		for i := range length {
			fmt.Fprintf(&all, `"d%d":{"$ref":"#/definitions/d%d"},`, i, i+1)
		}
		return `"n":{"items":{"$ref":"#/definitions/d0"}},` + all.String() + fmt.Sprintf(`"d%d":{}`, length)
	}
	const r = `{"$ref":"#/definitions/n"}`
	for _, c := range []struct{ name, definitions, want string }{
		{"allOf that doubles", doubling("allOf", "{}"), large},
		{"anyOf that doubles", doubling("anyOf", "false"), large},
		{"items that double", strings.ReplaceAll(doubling("allOf", "{}"), `"allOf":[`, `"items":[`), large},
		{"recursion that doubles", `"n":{"properties":{"d":{"allOf":[` + r + `,` + r + `]}}}`, n},
		{"recursion of alternatives", `"n":{"oneOf":[{"properties":{"k":{"const":1},"d":{"items":` + r + `}}},{"properties":{"k":{"const":2},"d":{"items":` + r + `}}}]}`, n},
		{"recursion that doubles elsewhere", `"n":{"properties":{"d":{"allOf":[{"$ref":"#/definitions/m"},{"$ref":"#/definitions/m"}]}}},"m":{"properties":{"d":` + r + `}}`, n},
		{"one level and two", `"n":{"properties":{"d":{"allOf":[` + r + `,{"properties":{"d":` + r + `}}]}}}`, n},
		{"a name and its pattern", `"n":{"properties":{"d":` + r + `},"patternProperties":{"^d$":` + r + `}}`, n},
		{"a name and a pattern of the other engine", `"n":{"properties":{"d":` + r + `},"patternProperties":{"^(?!x)":` + r + `}}`, n},
		{"a name and all others of another schema", `"n":{"properties":{"d":` + r + `},"allOf":[{"additionalProperties":` + r + `}]}`, n},
		{"items and contains", `"n":{"items":` + r + `,"contains":` + r + `}`, n},
		{"an item and all others of another schema", `"n":{"items":[{},` + r + `],"allOf":[{"items":[{}],"additionalItems":` + r + `}]}`, n},
		{"a condition and what follows", `"n":{"properties":{"d":{"if":` + r + `,"then":` + r + `}}}`, n},
		{"a long chain", chain(100), "/schema/definitions/n/items | $ref | begins a chain of more than 100 schemas for the same value"},

		{"a chain", chain(98), ""},
		{"one property", `"n":{"properties":{"d":` + r + `}}`, ""},
		{"two properties", `"n":{"properties":{"left":` + r + `,"right":` + r + `}}`, ""},
		{"a name and all others", `"n":{"properties":{"d":` + r + `},"patternProperties":{"^x":` + r + `},"additionalProperties":` + r + `}`, ""},
		{"two patterns", `"n":{"patternProperties":{"^x":` + r + `,"^(?!x)":` + r + `}}`, ""},
		{"an item and all others", `"n":{"items":[` + r + `,` + r + `],"additionalItems":` + r + `}`, ""},
		{"by type", `"n":{"anyOf":[{"properties":{"d":` + r + `}},{"items":` + r + `}]}`, ""},
		{"itself or a list of it", `"n":{"type":"object","properties":{"d":{"anyOf":[` + r + `,{"type":"array","items":` + r + `}]}}}`, ""},
		{"the names of properties", `"n":{"propertyNames":` + r + `,"properties":{"d":` + r + `}}`, ""},
		{"through another", `"n":{"properties":{"d":{"$ref":"#/definitions/m"}}},"m":{"properties":{"d":` + r + `}}`, ""},
		{"a meta-schema", `"n":{"$ref":"http://json-schema.org/draft-07/schema#"}`, ""},
		{"a meta-schema of 2019-09", `"n":{"$ref":"https://json-schema.org/draft/2019-09/schema"}`, ""},
		{"a meta-schema of 2020-12", `"n":{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := newService(t, schemas.Config{})
			_, err := s.Register(t.Context(), []byte(`{"name":"a","schema":`+dynamic(`,"d":`+r, `,"definitions":{`+c.definitions+`}`)+`}`))
			if c.want != "" {
				wantError(t, err, core.CodeInvalid, "malformed.json.schema", "the registration is not valid: ")
			}
			if diff := cmp.Diff(c.want, lines(err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
