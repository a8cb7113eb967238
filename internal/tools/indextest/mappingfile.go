package indextest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/indextest/batch"
)

// testPartialFile uses a mapping file that names one field: all else is as without the file, and stays so.
func testPartialFile(s *suite) {
	spec := index.Spec{
		Alias: s.alias, Known: mapping.Song(),
		Mapping: json.RawMessage(`{"index_patterns":["x"],"template":{"mappings":{"properties":{"experiment":{"properties":{"age":{"type":"long"}}}}}}}`),
	}
	s.ensureWith(spec)
	s.indexed(put("a", 1, `{"analysisId":"a","studyId":"S1","samples":[{"sampleId":"SA","info":{"any":1}}],"experiment":{"age":7,"site":"Oslo"}}`))
	want := map[string]mapping.Type{
		"studyId": mapping.Keyword, "samples": mapping.Nested, "samples.info": mapping.Flattened, "repositories": mapping.Nested,
		"experiment.age": mapping.Long, "experiment.site": mapping.Keyword, "experiment.site.keyword": "",
	}
	s.typed(want)
	s.ensureWith(spec)
	s.typed(want)
	s.counts(1, core.IndexScope{Field: "studyId", Organization: "S1"})
	c, err := s.x.Compare(s.Context(), spec)
	if err != nil || c.Refused != nil || c.Unasked {
		s.Fatalf("Compare returned %+v, %v", c, err)
	}
	for _, d := range c.Fields {
		if d.Change != mapping.ChangeNone {
			s.Errorf("differs: %+v", d)
		}
	}
}

// testNewFields tries each policy in a new index and in one that exists.
func testNewFields(s *suite) {
	for _, existing := range []bool{false, true} {
		for policy, want := range map[string]core.Outcome{
			mapping.NewFieldsAdd: core.OutcomeIndexed, mapping.NewFieldsIgnore: core.OutcomeIndexed, mapping.NewFieldsReject: core.OutcomeRejected,
		} {
			for file, raw := range map[string]json.RawMessage{"no file": nil, "file": json.RawMessage(`{"dynamic":false,"properties":{"more":{"type":"ip"}}}`)} {
				name := policy + ", " + file
				if existing {
					name += ", exists"
				}
				s.Run(name, func(t *testing.T) {
					s := &suite{T: t, x: s.x, alias: batch.Alias(), dialect: s.dialect}
					spec := index.Spec{Alias: s.alias, Mapping: raw, Known: mapping.Song(), NewFields: policy}
					if existing {
						first := spec
						first.NewFields = ""
						s.ensureWith(first)
					}
					s.ensureWith(spec)
					s.ensureWith(spec)
					s.indexed(put("known", 1, `{"studyId":"S","info":{"x":1},"gone":null,"none":[]}`))
					got := s.expect(outcomes(want, core.OutcomeIndexed), put("new", 1, `{"studyId":"S","fresh":{"value":"v"}}`), put("after", 1, `{"studyId":"S"}`))
					added := mapping.Type("")
					if policy == mapping.NewFieldsAdd {
						added = mapping.Keyword
					}
					s.typed(map[string]mapping.Type{"fresh.value": added, "studyId": mapping.Keyword})
					if want == core.OutcomeRejected && (got[0].Type != core.TypeNewField || !strings.Contains(got[0].Reason, "[fresh]")) {
						t.Errorf("rejected with %s: %s", got[0].Type, got[0].Reason)
					}
					c, err := s.x.Compare(s.Context(), spec)
					if err != nil {
						t.Fatal(err)
					}
					for _, d := range c.Fields {
						if d.Change != mapping.ChangeNone {
							t.Errorf("differs: %+v", d)
						}
					}
				})
			}
		}
	}
}

// testRefused: what the engine refuses is named with the whole path, before an index is created and when it is; one that exists is used.
func testRefused(s *suite) {
	for name, c := range map[string]struct {
		file string
		want []string
	}{
		"type":        {`{"mappings":{"properties":{"age":{"type":"lonng"}}}}`, []string{`"age"`, "lonng"}},
		"type below":  {`{"properties":{"experiment":{"properties":{"age":{"type":"lonng"}}},"age":{"type":"long"}}}`, []string{`"experiment.age"`, "lonng"}},
		"normalizer":  {`{"properties":{"files":{"properties":{"n":{"type":"keyword","normalizer":"folding"}}}}}`, []string{`"files.n"`, "folding"}},
		"analyzer":    {`{"properties":{"experiment.text":{"type":"text","analyzer":"none"}}}`, []string{`"experiment.text"`, "none"}},
		"parameter":   {`{"properties":{"a":{"properties":{"b":{"type":"keyword","ignore_abov":5}}}}}`, []string{`"a.b"`, "ignore_abov"}},
		"root member": {`{"propertiess":{}}`, []string{"propertiess"}},
		"dynamic":     {`{"properties":{"a":{"dynamic":"nope","properties":{}}}}`, []string{"nope"}},
	} {
		s.Run(name, func(t *testing.T) {
			s := &suite{T: t, x: s.x, alias: batch.Alias(), dialect: s.dialect}
			spec := index.Spec{Alias: s.alias, Known: mapping.Song(), Mapping: json.RawMessage(c.file)}
			check := func(err error) {
				t.Helper()
				for _, word := range c.want {
					if core.CodeOf(err) != core.CodeInvalid || !strings.Contains(core.MessageOf(err), word) {
						t.Errorf("got %v, want %s", err, word)
					}
				}
			}
			found, err := s.x.Compare(t.Context(), spec)
			if err != nil || found.Kind != index.NameAbsent {
				t.Errorf("Compare returned %+v, %v", found, err)
			}
			check(found.Refused)
			err = s.x.Ensure(t.Context(), spec)
			check(err)
			if errors.Is(err, core.ErrMappingRefused) {
				t.Error("an index that is missing cannot be used")
			}
			s.ensure()
			err = s.x.Ensure(t.Context(), spec)
			check(err)
			if !errors.Is(err, core.ErrMappingRefused) {
				t.Errorf("%v is not ErrMappingRefused", err)
			}
			s.indexed(put("a", 1, `{"studyId":"S"}`))
		})
	}
}
