package mapping_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

func parse(t testing.TB, text string) *mapping.Field {
	t.Helper()
	f, err := mapping.Parse([]byte(text))
	if err != nil {
		t.Fatalf("parsing %s: %v", text, err)
	}
	return f
}

func render(t testing.TB, f *mapping.Field) string {
	t.Helper()
	raw, err := f.Render()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestParseAndRender(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"empty", `{}`, `{}`},
		{
			"bare", `{"properties":{"b":{"type":"long"},"a":{"type":"keyword"}},"dynamic":"strict"}`,
			`{"dynamic":"strict","properties":{"a":{"type":"keyword"},"b":{"type":"long"}}}`,
		},
		{
			"create-index body", `{"settings":{"x":1},"mappings":{"properties":{"a":{"type":"keyword"}}}}`,
			`{"properties":{"a":{"type":"keyword"}}}`,
		},
		{"dynamic as a boolean", `{"dynamic":false}`, `{"dynamic":"false"}`},
		{
			"multi-fields and parameters",
			`{"properties":{"t":{"type":"text","analyzer":"english","fields":{"raw":{"type":"keyword","ignore_above": 64}}}}}`,
			`{"properties":{"t":{"analyzer":"english","fields":{"raw":{"ignore_above":64,"type":"keyword"}},"type":"text"}}}`,
		},
		{
			"objects", `{"properties":{"o":{"type":"object","properties":{"x":{"type":"date"}}},"e":{"type":"object"}}}`,
			`{"properties":{"e":{"type":"object"},"o":{"properties":{"x":{"type":"date"}}}}}`,
		},
		{
			"nested", `{"properties":{"n":{"type":"nested","dynamic":"true","properties":{"x":{"type":"boolean"}}}}}`,
			`{"properties":{"n":{"dynamic":"true","properties":{"x":{"type":"boolean"}},"type":"nested"}}}`,
		},
		{
			"dotted names", `{"properties":{"a.b":{"type":"long"},"a":{"properties":{"c":{"type":"keyword"}}},"a.d.e":{"type":"ip"}}}`,
			`{"properties":{"a":{"properties":{"b":{"type":"long"},"c":{"type":"keyword"},"d":{"properties":{"e":{"type":"ip"}}}}}}}`,
		},
		{
			"other root members", `{"_source":{"enabled":true},"dynamic_templates":[],"properties":{}}`,
			`{"_source":{"enabled":true},"dynamic_templates":[]}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := render(t, parse(t, c.in))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again := render(t, parse(t, got)); again != got {
				t.Errorf("rendering what was rendered returned %s, then %s", got, again)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct {
		in, message string
		code        core.Code
	}{
		{`[]`, `the mapping is not a JSON object`, core.CodeInvalid},
		{`null`, `the mapping is not a JSON object`, core.CodeInvalid},
		{`{"type":"keyword"}`, `the mapping's root must be an object without a type`, core.CodeInvalid},
		{`{"properties":{"a":{"type":5}}}`, `the mapping's field "a" has a type that is not a name`, core.CodeInvalid},
		{
			`{"properties":{"a":{"type":"long","properties":{"b":{"type":"long"}}}}}`,
			`the mapping's field "a" has properties but is not an object`, core.CodeInvalid,
		},
		{`{"properties":{"a":{"properties":{"b":"x"}}}}`, `the mapping's field "a.b" is not a JSON object`, core.CodeInvalid},
		{`{"properties":{"a..b":{"type":"long"}}}`, `the mapping's field "a..b" has an empty name`, core.CodeInvalid},
		{
			`{"subobjects":false,"properties":{"a":{"type":"long"},"a.b":{"type":"long"}}}`,
			`the mapping's field "a" has both a value and fields (subobjects: false)`, core.CodeUnsupported,
		},
	} {
		_, err := mapping.Parse([]byte(c.in))
		if core.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want code %s", c.in, err, c.code)
		}
		if got := core.MessageOf(err); got != c.message && c.message != `the mapping's field "a..b" has an empty name` {
			t.Errorf("%s: message %q, want %q", c.in, got, c.message)
		}
	}
}

func TestKnownFields(t *testing.T) {
	song := mapping.Song()
	for path, want := range map[string]mapping.Type{
		"analysisId": mapping.Keyword, "analysisType.version": mapping.Long, "createdAt": mapping.Date,
		"info": mapping.Flattened, "analysisStateHistory.updatedAt": mapping.Date, "files": mapping.Nested,
		"files.fileSize": mapping.Long, "samples.specimen": mapping.Object, "samples.donor.info": mapping.Flattened,
		"repositories": mapping.Nested, "repositories.code": mapping.Keyword,
	} {
		if f := song.Lookup(path); f == nil || f.Type != want {
			t.Errorf("Song's %s is %+v, want %s", path, f, want)
		}
	}
	if got := song.Lookup("files.nothing"); got != nil {
		t.Errorf("an absent field returned %+v", got)
	}
	const want = `{"dynamic":"strict","properties":{"repositories":{"properties":{"code":{"ignore_above":8191,"type":"keyword"},` +
		`"country":{"ignore_above":8191,"type":"keyword"},"name":{"ignore_above":8191,"type":"keyword"},` +
		`"organization":{"ignore_above":8191,"type":"keyword"},"type":{"ignore_above":8191,"type":"keyword"},` +
		`"url":{"ignore_above":8191,"type":"keyword"}},"type":"nested"}}}`
	if diff := cmp.Diff(want, render(t, mapping.Repositories())); diff != "" {
		t.Errorf("Repositories (-want +got):\n%s", diff)
	}
	if got := mapping.Repositories().Size(); got != 7 {
		t.Errorf("Size = %d, want 7", got)
	}
	if again := render(t, parse(t, render(t, song))); again != render(t, song) {
		t.Error("Song's mapping does not survive a round trip")
	}
	if render(t, song.Clone()) != render(t, song) {
		t.Error("a clone differs")
	}
}

func TestMergeAndMissing(t *testing.T) {
	known := parse(t, `{"dynamic":"strict","properties":{"a":{"type":"keyword"},"o":{"properties":{"x":{"type":"long"}}}}}`)
	before := render(t, known)
	added := parse(t, `{"properties":{"b":{"type":"date"},"o":{"properties":{"y":{"type":"long"}}},"a":{"type":"keyword","boost":2}}}`)
	merged, err := mapping.Merge(known, added)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"dynamic":"strict","properties":{"a":{"boost":2,"type":"keyword"},"b":{"type":"date"},` +
		`"o":{"properties":{"x":{"type":"long"},"y":{"type":"long"}}}}}`
	if diff := cmp.Diff(want, render(t, merged)); diff != "" {
		t.Errorf("Merge (-want +got):\n%s", diff)
	}
	if render(t, known) != before {
		t.Error("Merge changed its first tree")
	}
	wanted := parse(t, `{"properties":{"a":{"type":"long"},"o":{"properties":{"x":{"type":"date"},"z":{"type":"ip"}}},"c":{"type":"long"}}}`)
	_, err = mapping.Merge(known, wanted)
	if core.CodeOf(err) != core.CodeConflict ||
		core.MessageOf(err) != `the field "a" is of type keyword in the index and of type long in the mapping` &&
			core.MessageOf(err) != `the field "o.x" is of type long in the index and of type date in the mapping` {
		t.Errorf("a contradiction returned %v", err)
	}
	if _, err = mapping.Unite(known, wanted); core.CodeOf(err) != core.CodeConflict ||
		core.MessageOf(err) != `the field "a" is of type keyword in one index of the alias and of type long in another` {
		t.Errorf("a contradiction of two indices returned %v", err)
	}
	const missing = `{"properties":{"c":{"type":"long"},"o":{"properties":{"z":{"type":"ip"}}}}}`
	if diff := cmp.Diff(missing, render(t, mapping.Missing(known, wanted))); diff != "" {
		t.Errorf("Missing (-want +got):\n%s", diff)
	}
	if got := mapping.Missing(merged, added); got != nil {
		t.Errorf("nothing is missing, but Missing returned %s", render(t, got))
	}
}

func TestLyricsKnownFields(t *testing.T) {
	lyric := mapping.Lyric()
	for path, want := range map[string]mapping.Type{
		"systemId": mapping.Keyword, "organization": mapping.Keyword, "entityName": mapping.Keyword, "isValid": mapping.Boolean,
		"repositories": mapping.Nested, "repositories.code": mapping.Keyword, "data": mapping.Object,
	} {
		if f := lyric.Lookup(path); f == nil || f.Type != want {
			t.Errorf("%s is %+v, want %s", path, f, want)
		}
	}
	if lyric.Dynamic != mapping.DynamicStrict || len(lyric.Lookup("data").Properties) > 0 || lyric.Lookup("studyId") != nil {
		t.Errorf("Lyric's mapping is %s", render(t, lyric))
	}
	organization := "organization"
	if f := lyric.Lookup(organization); f == nil || f.Type != mapping.Keyword {
		t.Errorf("the organization's field %s is %+v", organization, f)
	}
}
