package schemas_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/schemas"
)

// dynamic is a dynamic schema with properties, and more keywords at its top.
func dynamic(properties, more string) string {
	return `{"type":"object","required":["experiment"],"properties":{"experiment":{"type":"object"}` + properties + `}` + more + `}`
}

func TestValidate(t *testing.T) {
	full := `{"studyId":"S1","analysisType":{"name":"a"},"experiment":{},"files":[`
	for _, c := range []struct{ name, schema, analysis, want string }{
		{"valid", simple, analysis("a", ""), ""},
		{"valid with a null version", simple, strings.Replace(analysis("a", ""), `"a"}`, `"a","version":null}`, 1), ""},
		{"members that no schema names", simple, analysis("a", `,"more":1,"samples":[]`), ""},
		{"no donor, specimen or sample needed", dynamic("", `,"additionalProperties":false`), analysis("a", ""), ""},
		{"samples where the schema lists them", dynamic(`,"samples":{"type":"array"}`, `,"additionalProperties":false`), analysis("a", `,"samples":[{}]`), ""},
		{"samples where the schema does not", dynamic("", `,"additionalProperties":false`), analysis("a", `,"samples":[]`), "/samples | additionalProperties | is not a property that the schema allows"},
		{
			"every base property is required", simple, `{"analysisType":{"name":"a"}}`,
			" | required | the property \"studyId\" is missing\n | required | the property \"files\" is missing\n | required | the property \"experiment\" is missing",
		},
		{"no files", simple, full + `]}`, "/files | minItems | must have at least 1 item, not 0"},
		{
			"every field of a file is required", simple, full + `{}]}`,
			"/files/0 | required | the property \"dataType\" is missing\n/files/0 | required | the property \"fileName\" is missing\n" +
				"/files/0 | required | the property \"fileSize\" is missing\n/files/0 | required | the property \"fileType\" is missing\n" +
				"/files/0 | required | the property \"fileAccess\" is missing\n/files/0 | required | the property \"fileMd5sum\" is missing",
		},
		{"a negative size", simple, full + strings.Replace(file("x", "y"), ":10", ":-1", 1) + `]}`, "/files/0/fileSize | minimum | must be at least 0"},
		{"a size that is text", simple, full + file("x", "y") + `,` + strings.Replace(file("x", "y"), ":10", `:"10"`, 1) + `]}`, "/files/1/fileSize | type | must be an integer, not a string"},
		{"a size that is no integer", simple, full + strings.Replace(file("x", "y"), ":10", ":1.5", 1) + `]}`, "/files/0/fileSize | type | must be an integer, not a number"},
		{"a size over 64 bits", simple, full + strings.Replace(file("x", "y"), ":10", ":9223372036854775808", 1) + `]}`, "/files/0/fileSize | maximum | must be at most 9223372036854775807"},
		{"a size of 64 bits", simple, full + strings.Replace(file("[x](1)-_.bam", "y"), ":10", ":9223372036854775807", 1) + `]}`, ""},
		{"a file name with a space", simple, full + file("a b", "y") + `]}`, `/files/0/fileName | pattern | must match the pattern ^[A-Za-z0-9_.\-\[\]()]+$`},
		{"a file name with a slash", simple, full + file("a/b", "y") + `,` + file("ü", "y") + `]}`, "/files/0/fileName | pattern | must match the pattern ^[A-Za-z0-9_.\\-\\[\\]()]+$\n" + `/files/1/fileName | pattern | must match the pattern ^[A-Za-z0-9_.\-\[\]()]+$`},
		{"an unknown access", simple, full + strings.Replace(file("x", "y"), "open", "closed", 1) + `]}`, `/files/0/fileAccess | enum | must be one of "open", "controlled"`},
		{"a short checksum", simple, full + strings.Replace(file("x", "y"), md5, "abc", 1) + `]}`, "/files/0/fileMd5sum | pattern | must match the pattern ^[a-fA-F0-9]{32}$"},
		{"an upper-case checksum", simple, full + strings.Replace(file("x", "y"), md5, strings.ToUpper(md5), 1) + `]}`, ""},
		{"experiment is no object", simple, strings.Replace(analysis("a", ""), `"experiment":{}`, `"experiment":[]`, 1), "/experiment | type | must be an object, not an array"},
		{"a pointer with escapes", dynamic(`,"a/b~c":{"type":"null"}`, ""), analysis("a", `,"a/b~c":1`), "/a~1b~0c | type | must be null, not a number"},
		{"a format", dynamic(`,"d":{"format":"date-time"}`, ""), analysis("a", `,"d":"yesterday"`), "/d | format | is not a valid date-time"},
		{"a format of 2020-12", `{"$schema":"https://json-schema.org/draft/2020-12/schema",` + dynamic(`,"d":{"format":"date"}`, "")[1:], analysis("a", `,"d":"yesterday"`), "/d | format | is not a valid date"},
		{"a look-ahead", dynamic(`,"d":{"pattern":"^(?!x)"}`, ""), analysis("a", `,"d":"xyz"`), "/d | pattern | must match the pattern ^(?!x)"},
		{"a backtracking expression that does not end", dynamic(`,"d":{"pattern":"^(?=a)(a+)+$"}`, ""), analysis("a", `,"d":"`+strings.Repeat("a", 60)+`!"`), "/d | pattern | must match the pattern ^(?=a)(a+)+$"},
		{"an exact number", dynamic(`,"d":{"maximum":9007199254740993}`, ""), analysis("a", `,"d":9007199254740994`), "/d | maximum | must be at most 9007199254740993"},
		{"an exact number that fits", dynamic(`,"d":{"maximum":9007199254740993}`, ""), analysis("a", `,"d":9007199254740993`), ""},
		{"multiples", dynamic(`,"d":{"items":{"multipleOf":0.01}}`, ""), analysis("a", `,"d":[0.07,19.99,0.005]`), "/d/2 | multipleOf | must be a multiple of 0.01"},
		{"one is 1.0", dynamic(`,"d":{"type":"integer","enum":[1]}`, ""), analysis("a", `,"d":1.0`), ""},
		{"equal items", dynamic(`,"d":{"uniqueItems":true}`, ""), analysis("a", `,"d":[{"a":1,"b":2},3,{"b":2.0,"a":1}]`), "/d | uniqueItems | the items 0 and 2 are equal"},
		{"not", dynamic(`,"d":{"not":{"const":"x"}}`, ""), analysis("a", `,"d":"x"`), `/d | not | must not be "x"`},
		{"an alternative that is meant", dynamic(`,"d":{"oneOf":[{"properties":{"k":{"const":"a"},"n":{"type":"number"}}},{"properties":{"k":{"const":"b"},"n":{"type":"string"}}}]}`, ""), analysis("a", `,"d":{"k":"b","n":1}`), "/d/n | type | must be a string, not a number"},
		{"two alternatives at once", dynamic(`,"d":{"oneOf":[{},{}]}`, ""), analysis("a", `,"d":1`), "/d | oneOf | matches the alternatives 1 and 2 of 2, but must match only one"},
		{"if and then", dynamic(`,"d":{"if":{"required":["a"]},"then":{"required":["b"]}}`, ""), analysis("a", `,"d":{"a":1}`), `/d | required | the property "b" is missing`},
		{"dependencies", dynamic(`,"d":{"dependencies":{"a":["b"]}}`, ""), analysis("a", `,"d":{"a":1}`), `/d | dependencies | the property "b" is missing beside "a"`},
		{"names", dynamic(`,"d":{"propertyNames":{"maxLength":2}}`, ""), analysis("a", `,"d":{"abc":1}`), "/d/abc | propertyNames | its name must have at most 2 characters, not 3"},
		{"a later version of the same", simple, strings.Replace(analysis("a", ""), `"a"}`, `"a","version":0}`, 1), "/analysisType/version | minimum | must be at least 1"},
		{"a version that is text", simple, strings.Replace(analysis("a", ""), `"a"}`, `"a","version":"1"}`, 1), "/analysisType/version | type | must be an integer or null, not a string"},
		{"no type", simple, strings.Replace(analysis("a", ""), `{"name":"a"}`, `{}`, 1), `/analysisType | required | the property "name" is missing`},
		{"not an object", simple, `[]`, " | type | must be an object, not an array"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := newService(t, schemas.Config{})
			register(t, s, `{"name":"a","schema":`+c.schema+`}`)
			ref, err := s.Validate(t.Context(), "S1", c.analysis)
			if c.want == "" {
				if err != nil || ref != (datamodel.AnalysisTypeRef{Name: "a", Version: 1}) {
					t.Errorf("%v, %v\n%s", ref, err, lines(err))
				}
				return
			}
			wantError(t, err, core.CodeInvalid, "schema.violation", "the analysis does not match ")
			if diff := cmp.Diff(c.want, lines(err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestValidateRefusesWhatIsNotJSON(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"nothing", "", "the analysis is not JSON: the text ends where a value is expected"},
		{"cut", `{"a":`, "the analysis is not JSON: the text ends where a value is expected"},
		{"a name twice", `{"a":1,"a":2}`, `the analysis is not JSON: the member "a" occurs twice`},
		{"not UTF-8", "\"\xff\"", "the analysis is not JSON: it is not UTF-8"},
		{"too deep", strings.Repeat("[", 10_000_000), "the analysis is not JSON: it is nested more than 256 levels"},
		{"too many values", "[" + strings.Repeat("0,", 2_000_000) + "0]", "the analysis is not JSON: it contains more than 1000000 values"},
		{"an endless number", "1" + strings.Repeat("0", 1_000_000), "the analysis is not JSON: a number is too large"},
		{"a tiny number", "1e-999999999", "the analysis is not JSON: a number is too large, too small or too long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := newService(t, schemas.Config{})
			_, err := s.Validate(t.Context(), "S1", c.body)
			wantError(t, err, core.CodeInvalid, "payload.parsing", c.want)
		})
	}
}

func TestValidateVersions(t *testing.T) {
	at := func(version string) string {
		return strings.Replace(analysis("a", ""), `"a"}`, `"a","version":`+version+`}`, 1)
	}
	for _, c := range []struct {
		name, body string
		cfg        schemas.Config
		want       int
		code       core.Code
		errorID    string
		message    string
	}{
		{"none named: the latest", analysis("a", ""), schemas.Config{}, 3, "", "", ""},
		{"the latest named", at("3"), schemas.Config{}, 3, "", "", ""},
		{"the latest as 3.0", at("3.0"), schemas.Config{}, 3, "", "", ""},
		{"an older one", at("2"), schemas.Config{}, 0, core.CodeConflict, "analysis.type.incorrect.version", `version 2 of the analysis type "a" is not its latest, which is 3`},
		{"an older one where allowed", at("2"), schemas.Config{AllowOlder: true}, 2, "", "", ""},
		{"one that never existed", at("4"), schemas.Config{}, 0, core.CodeNotFound, "analysis.type.not.found", `the analysis type "a" has no version 4`},
		{"one that never existed where older are allowed", at("4"), schemas.Config{AllowOlder: true}, 0, core.CodeNotFound, "analysis.type.not.found", `the analysis type "a" has no version 4`},
		{"a huge one", at("1" + strings.Repeat("0", 30)), schemas.Config{}, 0, core.CodeNotFound, "analysis.type.not.found", `the analysis type "a" has no version 2147483647`},
		{"an unknown type", analysis("b", ""), schemas.Config{}, 0, core.CodeNotFound, "analysis.type.not.found", `there is no analysis type "b"`},
		{"shared: none named", analysis("a", ""), schemas.Config{Shared: true}, 3, "", "", ""},
		{"shared: an unknown type", analysis("b", ""), schemas.Config{Shared: true}, 0, core.CodeNotFound, "analysis.type.not.found", `there is no analysis type "b"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := newService(t, c.cfg)
			for range 3 {
				register(t, s, `{"name":"a","schema":`+simple+`}`)
			}
			ref, err := s.Validate(t.Context(), "S1", c.body)
			if c.code == "" {
				if err != nil || ref.Version != c.want {
					t.Errorf("version %d, %v, want %d", ref.Version, err, c.want)
				}
				return
			}
			wantError(t, err, c.code, c.errorID, c.message)
			if hint := core.HintOf(err); c.code == core.CodeConflict && hint != "leave analysisType.version out, or set it to 3" {
				t.Errorf("hint %q", hint)
			}
		})
	}
	t.Run("each version has its own rules", func(t *testing.T) {
		s, _ := newService(t, schemas.Config{AllowOlder: true})
		register(t, s, `{"name":"a","schema":`+simple+`}`)
		register(t, s, `{"name":"a","schema":`+dynamic(`,"more":{"type":"string"}`, "")+`}`)
		older := strings.Replace(analysis("a", `,"more":1`), `"a"}`, `"a","version":1}`, 1)
		if _, err := s.Validate(t.Context(), "S1", older); err != nil {
			t.Error(err)
		}
		if _, err := s.Validate(t.Context(), "S1", analysis("a", `,"more":1`)); err == nil {
			t.Error("the latest version was not applied")
		}
	})
}

func TestCheckVersion(t *testing.T) {
	for _, c := range []struct {
		name    string
		cfg     schemas.Config
		version int
		code    core.Code
		errorID string
		message string
	}{
		{"the latest", schemas.Config{}, 2, "", "", ""},
		{"an older one", schemas.Config{}, 1, core.CodeConflict, "analysis.type.incorrect.version", `version 1 of the analysis type "a" is not its latest, which is 2`},
		{"an older one where allowed", schemas.Config{AllowOlder: true}, 1, "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := newService(t, c.cfg)
			for range 2 {
				register(t, s, `{"name":"a","schema":`+simple+`}`)
			}
			err := s.CheckVersion(t.Context(), datamodel.AnalysisTypeRef{Name: "a", Version: c.version})
			if c.code != "" {
				wantError(t, err, c.code, c.errorID, c.message)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFileTypes(t *testing.T) {
	body := strings.Replace(analysis("a", ""), `"files":[`, `"files":[`+file("b.vcf", "vcf")+`,`+file("c.txt", "TXT")+`,`, 1)
	s, _ := newService(t, schemas.Config{})
	register(t, s, `{"name":"a","schema":`+simple+`,"options":{"fileTypes":["BAM","VCF"]}}`)
	_, err := s.Validate(t.Context(), "S1", body)
	wantError(t, err, core.CodeInvalid, "schema.violation", `the analysis does not match version 1 of "a": /files/0/fileType: `)
	want := `/files/0/fileType | fileTypes | "vcf" is not one of the file types of this analysis type: "BAM", "VCF"; only the case differs from "VCF"` +
		"\n" + `/files/1/fileType | fileTypes | "TXT" is not one of the file types of this analysis type: "BAM", "VCF"`
	if diff := cmp.Diff(want, lines(err)); diff != "" {
		t.Error(diff)
	}
	t.Run("an empty list allows any", func(t *testing.T) {
		register(t, s, `{"name":"a","schema":`+simple+`,"options":{"fileTypes":[]}}`)
		if _, err := s.Validate(t.Context(), "S1", body); err != nil {
			t.Error(err)
		}
	})
}

func TestViolationsAreCapped(t *testing.T) {
	s, _ := newService(t, schemas.Config{})
	register(t, s, `{"name":"a","schema":`+dynamic(`,"n":{"items":{"type":"string"}}`, "")+`}`)
	body := analysis("a", `,"n":[0`+strings.Repeat(",1", 100_000)+`]`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := s.Validate(t.Context(), "S1", body)
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 100 {
		t.Errorf("%d MiB allocated: the violations that are not listed were collected", took)
	}
	if got := len(violations(err)); got != 100 {
		t.Errorf("%d violations, want 100", got)
	}
	if !strings.HasSuffix(core.MessageOf(err), ", and more; only the first 100 violations are listed") {
		t.Errorf("message %q", core.MessageOf(err))
	}
	if hint := core.HintOf(err); hint != "fix these and send it again to see the others" {
		t.Errorf("hint %q", hint)
	}
}

func TestValidateIsBounded(t *testing.T) {
	many := "[0" + strings.Repeat(",0", 900_000) + "]"
	t.Run("and ends with its caller", func(t *testing.T) {
		s, _ := newService(t, schemas.Config{})
		register(t, s, `{"name":"a","schema":`+dynamic(`,"d":{"items":{"type":"number"}}`, "")+`}`)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.Validate(ctx, "S1", analysis("a", `,"d":`+many))
		wantError(t, err, core.CodeUnavailable, "", "the check was canceled")
	})
	t.Run("names that would be written too often", func(t *testing.T) {
		s, _ := newService(t, schemas.Config{})
		register(t, s, `{"name":"a","schema":`+simple+`}`)
		_, err := s.Validate(t.Context(), "S1", analysis("a", `,"`+strings.Repeat("n", 1<<20)+`":`+strings.Replace(many, "0,0", "[0],[0]", 1)))
		wantError(t, err, core.CodeInvalid, "schema.violation", `the analysis does not match version 1 of "a": the whole: validating it takes too much work: the names in it are too long`)
	})
	t.Run("a schema of many parts is compiled", func(t *testing.T) {
		s, _ := newService(t, schemas.Config{})
		var parts strings.Builder
		for i := range 4900 {
			parts.WriteString(`,"p` + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + strings.Repeat("y", i/26) + `":{"type":"string"}`)
		}
		began := time.Now()
		register(t, s, `{"name":"a","schema":`+dynamic(parts.String(), "")+`}`)
		t.Log(time.Since(began))
	})
}

func TestValidateMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	s, _ := newService(t, schemas.Config{Metrics: schemas.NewMetrics(reg)})
	register(t, s, `{"name":"a","schema":`+simple+`}`)
	for _, body := range []string{analysis("a", ""), analysis("a", ""), analysis("b", ""), `{}`, `x`} {
		_, _ = s.Validate(t.Context(), "S1", body)
	}
	want := `
# HELP tutti_schema_validations_total Analyses that were validated, by result.
# TYPE tutti_schema_validations_total counter
tutti_schema_validations_total{result="invalid"} 3
tutti_schema_validations_total{result="valid"} 2
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "tutti_schema_validations_total"); err != nil {
		t.Error(err)
	}
}
