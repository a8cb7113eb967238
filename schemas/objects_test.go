package schemas_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/schemas"
)

// TestExperimentIsAnObject: a schema registers unless no object can be valid as experiment, and only objects are valid then.
func TestExperimentIsAnObject(t *testing.T) {
	var cases struct {
		Register []struct {
			Schema json.RawMessage
			Status int
		}
		Submit []struct {
			Experiment json.RawMessage
			Status     int
		} `json:"submit under experiment {}"`
	}
	readCases(t, "register-experiment.json", &cases)
	for _, c := range cases.Register {
		t.Run(string(c.Schema), func(t *testing.T) {
			s, _ := newService(t, schemas.Config{})
			_, err := s.Register(t.Context(), []byte(`{"name":"a","schema":`+string(c.Schema)+`}`))
			if c.Status != 200 {
				wantError(t, err, core.CodeInvalid, "malformed.json.schema", "the registration is not valid: /schema/properties/experiment: accepts no object, but experiment is an object in every analysis")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, experiment := range []string{`"x"`, `null`, `[]`, `5`, `true`} {
				_, err := s.Validate(t.Context(), "S1", strings.Replace(analysis("a", ""), `"experiment":{}`, `"experiment":`+experiment, 1))
				if got := violations(err); len(got) != 1 || got[0].Pointer != "/experiment" || got[0].Keyword != "type" {
					t.Errorf("%s: %v", experiment, err)
				}
			}
			if _, err := s.Validate(t.Context(), "S1", strings.Replace(analysis("a", ""), `"experiment":{}`, `"experiment":{"n":1}`, 1)); err != nil {
				t.Error(err)
			}
		})
	}
	for _, c := range cases.Submit {
		s, _ := newService(t, schemas.Config{})
		register(t, s, `{"name":"a","schema":{"type":"object","required":["experiment"],"properties":{"experiment":{}}}}`)
		_, err := s.Validate(t.Context(), "S1", strings.Replace(analysis("a", ""), `"experiment":{}`, `"experiment":`+string(c.Experiment), 1))
		if (err == nil) != (c.Status == 200) {
			t.Errorf("%s: %v, want %d", c.Experiment, err, c.Status)
		}
	}
}

// TestExperimentOfOthers: only what surely excludes every object is refused.
func TestExperimentOfOthers(t *testing.T) {
	for _, c := range []struct {
		name, experiment string
		refused          bool
	}{
		{"alternatives without objects", `{"anyOf":[{"type":"string"},{"const":1}]}`, true},
		{"an alternative with objects", `{"anyOf":[{"type":"string"},{"type":"object"}]}`, false},
		{"one of two", `{"oneOf":[{"type":"string"},{"minProperties":1}]}`, false},
		{"all of two", `{"allOf":[{"type":["object","string"]},{"type":["string","null"]}]}`, true},
		{"not an object", `{"not":{"type":"object"}}`, true},
		{"not anything", `{"not":{}}`, true},
		{"not such an object", `{"not":{"type":"object","required":["a"]}}`, false},
		{"not a text", `{"not":{"type":"string"}}`, false},
		{"a value that is an object", `{"const":{"a":1}}`, false},
		{"a value that the rest excludes", `{"const":{"a":1},"required":["b"]}`, true},
		{"values of which one is an object", `{"enum":["x",{"a":1}]}`, false},
		{"no value", `{"enum":[]}`, true},
		{"more properties than it may have", `{"minProperties":2,"maxProperties":1}`, true},
		{"a property that must not be", `{"required":["a"],"properties":{"a":false}}`, true},
		{"a property that may not be", `{"properties":{"a":false}}`, false},
		{"a property that is no more", `{"required":["a"],"additionalProperties":false}`, true},
		{"a property of a pattern", `{"required":["a"],"patternProperties":{"^a$":{}},"additionalProperties":false}`, false},
		{"a recursion", `{"properties":{"child":{"$ref":"#/properties/experiment"}},"required":["child"]}`, false},
		{"a condition", `{"if":{"required":["a"]},"then":{"type":"string"},"else":{"type":"null"}}`, true},
		{"a condition with one branch", `{"if":{"required":["a"]},"then":{"type":"string"}}`, false},
		{"a reference beside what the draft ignores", `{"$ref":"#/definitions/e","type":"string"}`, false},
		{"a reference to nothing", `{"$ref":"#/definitions/none"}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := newService(t, schemas.Config{})
			_, err := s.Register(t.Context(), []byte(`{"name":"a","schema":{"type":"object","required":["experiment"],"definitions":{"e":{"type":"object"}},"properties":{"experiment":`+c.experiment+`}}}`))
			if (err != nil) != c.refused {
				t.Errorf("%v, want it refused: %t", err, c.refused)
			}
			if c.name == "a reference to nothing" {
				if diff := cmp.Diff(`/schema/properties/experiment/$ref | $ref | refers to "#/definitions/none", which does not exist`, lines(err)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// TestStoredVersionsStay: a version that was registered before stays, with the added rule and an expression that is refused since.
func TestStoredVersionsStay(t *testing.T) {
	for _, experiment := range []string{`{"type":"string"}`, `{"$ref":"#/definitions/e"}`, `{"$ref":"#/definitions/e","definitions":{"f":{"type":"string"}}}`, `{}`} {
		s, store := newService(t, schemas.Config{})
		store.types = append(store.types, datamodel.AnalysisType{
			Name: "a", Version: 1,
			Schema: json.RawMessage(`{"type":"object","required":["experiment"],"definitions":{"e":{"type":["string","object"]}},"properties":{"experiment":` + experiment + `,"f":{"$ref":"#/properties/experiment"},"v":{"pattern":"a\\z"}}}`),
		})
		if _, err := s.TypeWhole(t.Context(), "a", 1, false); err != nil {
			t.Error(err)
		}
		_, err := s.Validate(t.Context(), "S1", strings.Replace(analysis("a", ""), `"experiment":{}`, `"experiment":"x"`, 1))
		if diff := cmp.Diff("/experiment | type | must be an object, not a string", lines(err)); diff != "" {
			t.Error(experiment, diff)
		}
		_, err = s.Validate(t.Context(), "S1", analysis("a", ""))
		if (err == nil) == (experiment == `{"type":"string"}`) {
			t.Error(experiment, err)
		}
	}
}

// TestInfoOfAFileIsAnObject, as Song's own base schema has it.
func TestInfoOfAFileIsAnObject(t *testing.T) {
	var cases []struct {
		Analysis         json.RawMessage
		Status           int
		ErrorID, Pointer string
	}
	readCases(t, "submit-files-info.json", &cases)
	s, _ := newService(t, schemas.Config{})
	register(t, s, `{"name":"t","schema":`+simple+`}`)
	for _, c := range cases {
		_, err := s.Validate(t.Context(), "S1", string(c.Analysis))
		if c.Status == 200 {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		wantError(t, err, core.CodeInvalid, c.ErrorID, "the analysis does not match")
		if got := violations(err); len(got) != 1 || got[0].Pointer != c.Pointer {
			t.Errorf("%s: %v", c.Analysis, err)
		}
	}
}

func readCases(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// TestPublishHint: a publication has no body, so that its hint must not speak of one.
func TestPublishHint(t *testing.T) {
	s, _ := newService(t, schemas.Config{})
	register(t, s, `{"name":"a","schema":`+simple+`}`)
	register(t, s, `{"name":"a","schema":`+simple+`}`)
	err := s.CheckVersion(t.Context(), datamodel.AnalysisTypeRef{Name: "a", Version: 1})
	e, _ := errors.AsType[*core.Error](err)
	if want := "replace or patch the analysis so that it matches version 2, then publish it; schemas.enforceLatest: false accepts older versions"; e == nil || e.Hint != want {
		t.Errorf("%v", err)
	}
}
