package indextest

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/indextest/batch"
)

func testUserMapping(s *suite) {
	given := json.RawMessage(`{"mappings":{"dynamic":false,"properties":{
		"studyId":{"type":"keyword"},"title":{"type":"text","fields":{"raw":{"type":"keyword","ignore_above":64}}},
		"size":{"type":"integer"},"parts":{"type":"nested","dynamic":"strict","properties":{"name":{"type":"keyword"}}},
		"opaque":{"type":"object","enabled":false}}}}`)
	s.ensureWith(index.Spec{Alias: s.alias, Mapping: given, Known: mapping.Song()})
	doc := `{"studyId":"S","title":"A study","size":5,"unmapped":{"any":["thing"]},"opaque":{"x":[1,{}]},"parts":[{"name":"x"}]}`
	s.expect(outcomes(core.OutcomeIndexed, core.OutcomeRejected, core.OutcomeIndexed),
		put("a", 1, doc), put("b", 1, `{"size":99999999999}`), put("c", 1, `{"opaque":"x","unmapped":5}`))
	s.holds("a", 1, doc)
	s.typed(map[string]mapping.Type{
		"studyId": mapping.Keyword, "title": "text", "title.raw": mapping.Keyword, "size": "integer", "parts": mapping.Nested,
		"unmapped": "", "files": mapping.Nested, "repositories": mapping.Nested, "repositories.code": mapping.Keyword,
	})
	s.indexed(put("d", 1, `{"parts":[{"name":"x","length":5}]}`))
	s.typed(map[string]mapping.Type{"parts.length": mapping.Double})
	s.ensureWith(index.Spec{Alias: s.alias, Mapping: given})
	s.ensureWith(index.Spec{Alias: s.alias, Mapping: json.RawMessage(`{"properties":{"extra":{"type":"keyword"}}}`)})
	s.typed(map[string]mapping.Type{"extra": mapping.Keyword, "size": "integer"})
	err := s.x.Ensure(s.Context(), index.Spec{
		Alias: s.alias, Mapping: json.RawMessage(`{"properties":{"size":{"type":"keyword"}}}`),
	})
	if core.CodeOf(err) != core.CodeConflict {
		s.Errorf("Ensure with another type returned %v, want CodeConflict", err)
	}
	s.typed(map[string]mapping.Type{"size": "integer"})
}

// testOwnField uses mappings with and without the field repositories, which tutti adds to every document.
func testOwnField(s *suite) {
	const block = `"repositories":[{"code":"one","name":"One","organization":"O","country":"CA","url":"http://one","type":"SONG"}]`
	for name, c := range map[string]struct {
		// first is the mapping that the alias is made with, then the one that it is given later.
		first, then string
		want        map[string]mapping.Type
		counted     int64
	}{
		"any fields":     {`{"properties":{"studyId":{"type":"keyword"}}}`, "", own(mapping.Nested), 1},
		"no fields":      {`{}`, "", own(mapping.Nested), 1},
		"no new fields":  {`{"mappings":{"dynamic":false,"properties":{"studyId":{"type":"keyword"}}}}`, "", own(mapping.Nested), 1},
		"strict":         {`{"dynamic":"strict","properties":{"studyId":{"type":"keyword"}}}`, "", own(mapping.Nested), 1},
		"given later":    {"", `{"dynamic":false}`, own(mapping.Nested), 1},
		"one's own":      {`{"properties":{"repositories":{"type":"object","properties":{"code":{"type":"keyword"}}}}}`, `{}`, own(mapping.Object), 1},
		"no type":        {`{"properties":{"repositories":{"properties":{"code":{"type":"keyword"}}}}}`, `{}`, own(mapping.Nested), 1},
		"nothing at all": {`{"enabled":false}`, `{"enabled":false}`, map[string]mapping.Type{"repositories": "", "studyId": ""}, 0},
	} {
		s.Run(name, func(t *testing.T) {
			s := &suite{T: t, x: s.x, alias: batch.Alias()}
			if c.first == "" {
				s.ensureWith(index.Spec{Alias: s.alias, Mapping: json.RawMessage(`{"dynamic":false}`)})
				s.typed(map[string]mapping.Type{"repositories": ""})
			} else {
				s.ensureWith(index.Spec{Alias: s.alias, Mapping: json.RawMessage(c.first), Known: mapping.Song()})
			}
			if c.then != "" {
				s.ensureWith(index.Spec{Alias: s.alias, Mapping: json.RawMessage(c.then), Known: mapping.Song()})
			}
			s.typed(c.want)
			s.indexed(put("a", 1, `{`+block+`}`))
			s.typed(c.want)
			rest := map[string]mapping.Type{"files": mapping.Nested, "analysisId": mapping.Keyword}
			if c.first == "" || strings.Contains(c.first, "enabled") { // of an index that exists only tutti's own field is added
				rest = map[string]mapping.Type{"files": "", "analysisId": ""}
			}
			s.typed(rest)
			s.counts(c.counted, core.IndexScope{Repository: "one"})
			s.counts(0, core.IndexScope{Repository: "two"})
		})
	}
}

// own is the expected type of the field repositories.
func own(t mapping.Type) map[string]mapping.Type {
	return map[string]mapping.Type{"repositories": t, "repositories.code": mapping.Keyword}
}

func testEnsure(s *suite) {
	s.ensureWith(index.Spec{Alias: s.alias})
	s.typed(map[string]mapping.Type{"studyId": ""})
	s.indexed(put("a", 1, `{"fileCount":1,"studyId":"2020-01-01"}`))
	s.ensure()
	s.ensure()
	s.holds("a", 1, `{"fileCount":1,"studyId":"2020-01-01"}`)
	s.typed(map[string]mapping.Type{
		"studyId": mapping.Keyword, "fileCount": mapping.Double, "analysisId": mapping.Keyword, "files.fileSize": mapping.Long,
	})
	want, err := s.x.Mapping(s.Context(), s.alias)
	if err != nil {
		s.Fatal(err)
	}
	s.ensure()
	got, err := s.x.Mapping(s.Context(), s.alias)
	if err != nil {
		s.Fatal(err)
	}
	if diff := cmp.Diff(canonical(s.T, want), canonical(s.T, got)); diff != "" {
		s.Errorf("Ensure changed a mapping that had all fields (-want +got):\n%s", diff)
	}
}

func canonical(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	tree, err := mapping.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	out, err := tree.Render()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func testConcurrentEnsure(s *suite) {
	var work sync.WaitGroup
	for range 6 {
		work.Go(func() {
			if err := s.x.Ensure(s.Context(), index.Spec{Alias: s.alias, Known: mapping.Song()}); err != nil {
				s.Errorf("Ensure: %v", err)
			}
		})
	}
	work.Wait()
	s.indexed(put("a", 1, `{"studyId":"S"}`))
	s.counts(1, core.IndexScope{})
	s.ensure()
	s.holds("a", 1, `{"studyId":"S"}`)
}

// testMissingAlias checks that every method returns that the alias is missing, and that none creates an index of that name.
func testMissingAlias(s *suite) {
	strict := remove("b", 2)
	strict.Strict = true
	for _, writes := range [][]core.Write{{put("a", 1, `{}`), remove("b", 1)}, {remove("a", 1)}, {remove("a", 1), strict}} {
		results, err := s.x.Write(s.Context(), batch.Encode(s.x, s.alias, writes...))
		if err == nil && len(results) != len(writes) {
			s.Errorf("Write returned %d results for %d items", len(results), len(writes))
		}
		if err != nil && core.CodeOf(err) != core.CodeIndexBlocked {
			s.Errorf("Write: %v", err)
		}
		for i, r := range results {
			if r.Outcome != core.OutcomeRetry || r.Code != core.CodeIndexBlocked {
				s.Errorf("item %d of %d: %+v, want a retry with CodeIndexBlocked", i, len(writes), r)
			}
		}
	}
	_, _, getErr := s.x.Get(s.Context(), s.alias, "a")
	getAllErr := s.x.GetAll(s.Context(), s.alias, []string{"a"}, func(int, core.StoredDocument, bool) {})
	_, countErr := s.x.Count(s.Context(), s.alias, core.IndexScope{})
	_, mappingErr := s.x.Mapping(s.Context(), s.alias)
	scanErr := s.x.Scan(s.Context(), s.alias, core.IndexScope{}, 0, func(string, core.Version) error { return nil })
	for name, err := range map[string]error{
		"Get": getErr, "GetAll": getAllErr, "Count": countErr, "Mapping": mappingErr, "Scan": scanErr,
		"Check": s.x.Check(s.Context(), s.alias), "Refresh": s.x.Refresh(s.Context(), s.alias),
	} {
		if core.CodeOf(err) != core.CodeIndexBlocked {
			s.Errorf("%s returned %v, want CodeIndexBlocked", name, err)
		}
	}
	s.missing(mappingErr)
	s.missing(s.x.Check(s.Context(), s.alias))
	s.ensure()
	s.indexed(put("a", 1, `{}`))
	if err := s.x.Check(s.Context(), s.alias); err != nil {
		s.Errorf("Check: %v", err)
	}
}

// testIdentity checks that two indices never have the same identity, and that an index keeps its own.
func testIdentity(s *suite) {
	if got, err := s.x.Identity(s.Context(), s.alias); got != "" || core.CodeOf(err) != core.CodeIndexBlocked {
		s.Errorf("%q, %v of a missing alias, want CodeIndexBlocked", got, err)
	}
	s.ensure()
	other := &suite{T: s.T, x: s.x, alias: batch.Alias()}
	other.ensure()
	first, err := s.x.Identity(s.Context(), s.alias)
	second, otherErr := s.x.Identity(s.Context(), other.alias)
	if first == "" || second == "" || first == second || err != nil || otherErr != nil {
		s.Errorf("%q, %v and %q, %v, want two identities", first, err, second, otherErr)
	}
	s.indexed(put("a", 1, `{"x":1}`))
	s.ensure()
	if again, err := s.x.Identity(s.Context(), s.alias); again != first || err != nil {
		s.Errorf("%q, %v, want %q again", again, err, first)
	}
}

// missing fails unless ErrIndexMissing is the only sentinel of the port that err matches.
func (s *suite) missing(err error) {
	s.Helper()
	if !errors.Is(err, core.ErrIndexMissing) || errors.Is(err, core.ErrIndexForbidden) || errors.Is(err, core.ErrIndexUnreachable) {
		s.Errorf("%v, want only ErrIndexMissing", err)
	}
}

// testImpossibleNames requests mappings by names that no index can have.
func testImpossibleNames(s *suite) {
	for _, name := range []string{"", ".", "..", "Upper", "with space", "a,b", "a*", "-a", "_all", "a/b", "a#b", "a:b", strings.Repeat("a", 300)} {
		raw, err := s.x.Mapping(s.Context(), name)
		if core.CodeOf(err) != core.CodeInvalid || core.MessageOf(err) == "" || raw != nil {
			s.Errorf("%q: %s, %v, want CodeInvalid", name, raw, err)
		}
		for _, sentinel := range []error{core.ErrIndexMissing, core.ErrIndexForbidden, core.ErrIndexUnreachable} {
			if errors.Is(err, sentinel) {
				s.Errorf("%q: %v is %v", name, err, sentinel)
			}
		}
	}
}

// testKeptParameters checks that parameters of a user's mapping that tutti does not know are kept.
func testKeptParameters(s *suite) {
	runtime := `"runtime":{"year":{"type":"long"}},`
	if s.dialect.NoRuntimeFields {
		runtime = ""
	}
	s.ensureWith(index.Spec{Alias: s.alias, Mapping: json.RawMessage(`{"dynamic":"false",` + runtime + `"properties":{"study":{"type":"alias","path":"studyId"},"studyId":{"type":"keyword"},"place":{"type":"geo_point"}}}`)})
	raw, err := s.x.Mapping(s.Context(), s.alias)
	if err != nil {
		s.Fatal(err)
	}
	tree, err := mapping.Parse(raw)
	if err != nil {
		s.Fatal(err)
	}
	s.typed(map[string]mapping.Type{"study": "alias", "place": "geo_point", "studyId": mapping.Keyword})
	if f := tree.Lookup("study"); f == nil || string(f.Params["path"]) != `"studyId"` {
		s.Errorf("the alias field is %+v", f)
	}
	if s.dialect.NoRuntimeFields {
		return
	}
	if runtime := string(tree.Params["runtime"]); !strings.Contains(runtime, `"year":{`) || !strings.Contains(runtime, `"type":"long"`) {
		s.Errorf("the runtime fields are %s", runtime)
	}
}
