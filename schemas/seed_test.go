package schemas_test

import (
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/schemas"
)

func TestSeed(t *testing.T) {
	t.Run("an empty store gets Song's analysis types once", func(t *testing.T) {
		s, store := newService(t, schemas.Config{})
		for range 2 {
			if err := s.Seed(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if len(store.types) != 2 || store.types[0].Name != "variantCall" || store.types[1].Name != "sequencingRead" {
			t.Fatalf("%+v", store.types)
		}
		for _, c := range []struct{ name, experiment, want string }{
			{"variantCall", `{"matchedNormalSampleSubmitterId":"S-1","variantCallingTool":"tool"}`, ""},
			{"variantCall", `{"matchedNormalSampleSubmitterId":"S-1"}`, `/experiment | required | the property "variantCallingTool" is missing`},
			{"variantCall", `{"variantCallingTool":"tool"}`, `/experiment | required | the property "matchedNormalSampleSubmitterId" is missing`},
			{"sequencingRead", `{"libraryStrategy":"RNA-Seq","aligned":null,"insertSize":null,"more":1}`, ""},
			{"sequencingRead", `{"libraryStrategy":"WGS","aligned":true,"pairedEnd":false,"alignmentTool":"x","referenceGenome":"y","insertSize":3}`, ""},
			{"sequencingRead", `{}`, `/experiment | required | the property "libraryStrategy" is missing`},
			{"sequencingRead", `{"libraryStrategy":"WGS","insertSize":1.5}`, "/experiment/insertSize | type | must be an integer or null, not a number"},
		} {
			doc := strings.Replace(analysis(c.name, `,"samples":[{"submitterSampleId":"S-2"}],"info":{}`), `"experiment":{}`, `"experiment":`+c.experiment, 1)
			if _, err := s.Validate(t.Context(), "S1", doc); lines(err) != c.want || (err == nil) != (c.want == "") {
				t.Errorf("%s %s: %v\n%s", c.name, c.experiment, err, lines(err))
			}
		}
	})
	t.Run("a store with another type stays as it is", func(t *testing.T) {
		s, store := newService(t, schemas.Config{})
		register(t, s, `{"name":"a","schema":`+simple+`}`)
		if err := s.Seed(t.Context()); err != nil || len(store.types) != 1 {
			t.Fatal(err, store.types)
		}
		_, err := s.Validate(t.Context(), "S1", analysis("variantCall", ""))
		wantError(t, err, core.CodeNotFound, "analysis.type.not.found", "")
	})
}
