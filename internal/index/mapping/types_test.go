package mapping_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/index/mapping"
)

// TestWidest: the widest of several declarations decides, in any order.
func TestWidest(t *testing.T) {
	t.Parallel()
	const i, n, s, b, d, o = mapping.JSONInteger, mapping.JSONNumber, mapping.JSONString, mapping.JSONBoolean, mapping.JSONDate, mapping.JSONObject
	for _, tt := range []struct {
		as   []mapping.JSONType
		want mapping.Type
	}{
		{[]mapping.JSONType{i}, mapping.Long},
		{[]mapping.JSONType{n}, mapping.Double},
		{[]mapping.JSONType{i, n}, mapping.Double},
		{[]mapping.JSONType{s}, mapping.Keyword},
		{[]mapping.JSONType{b}, mapping.Boolean},
		{[]mapping.JSONType{d}, mapping.Date},
		{[]mapping.JSONType{d, s}, mapping.Keyword},
		{[]mapping.JSONType{d, i}, mapping.Keyword},
		{[]mapping.JSONType{i, s}, mapping.Keyword},
		{[]mapping.JSONType{n, s, i}, mapping.Keyword},
		{[]mapping.JSONType{b, i}, mapping.Keyword},
		{[]mapping.JSONType{b, s}, mapping.Keyword},
		{[]mapping.JSONType{o}, ""},
		{[]mapping.JSONType{o, s}, ""},
	} {
		var forward *mapping.Types
		var backward mapping.TypesBuilder
		for at := range tt.as {
			var one mapping.TypesBuilder
			one.Declare("a", tt.as[at], "x")
			forward = forward.Merge(one.Types())
			backward.Declare("a", tt.as[len(tt.as)-1-at], "x")
		}
		for _, types := range []*mapping.Types{forward, backward.Types()} {
			if got, ok := types.Lookup("a"); !ok || got.Type != tt.want || (len(types.Differing()) > 0) != (len(tt.as) > 1) {
				t.Errorf("%v: %q, %v", tt.as, got.Type, types.Differing())
			}
		}
	}
}

// TestWithout: fields that a mapping has, and all below its values and free-form objects, are not decided.
func TestWithout(t *testing.T) {
	t.Parallel()
	var b mapping.TypesBuilder
	for _, path := range []string{"studyId", "info.x", "files.fileSize", "files.own", "experiment.n", "off.n"} {
		b.Declare(path, mapping.JSONInteger, "x")
	}
	tree := mapping.Song()
	tree.Properties["off"] = &mapping.Field{Type: mapping.Object, Params: parse(t, `{"enabled":false}`).Params}
	var got []string
	for path := range b.Types().Below("").Without(tree).All() {
		got = append(got, path)
	}
	if d := cmp.Diff([]string{"experiment.n", "files.own"}, got); d != "" {
		t.Error(d)
	}
}

// TestRetyped: a rebuild changes what was declared otherwise, and whole numbers that nothing declares; a date stays one.
func TestRetyped(t *testing.T) {
	t.Parallel()
	live := parse(t, `{"dynamic":"strict","properties":{"studyId":{"type":"keyword"},"ratio":{"type":"long"},"n":{"type":"long"},"free":{"type":"long"},
		"day":{"type":"date"},"x":{"properties":{"note":{"type":"date"},"when":{"type":"keyword"}}},"kept":{"type":"long"}}}`)
	var b mapping.TypesBuilder
	b.Declare("ratio", mapping.JSONNumber, "x")
	b.Declare("n", mapping.JSONInteger, "x")
	b.Declare("x.note", mapping.JSONString, "x")
	b.Declare("x.when", mapping.JSONDate, "x")
	wanted := parse(t, `{"_meta":{"tutti":{"types":"declared"}},"properties":{"studyId":{"type":"keyword"},"kept":{"type":"long"}}}`)
	var got []string
	for _, d := range b.Types().Retyped(wanted, live) {
		got = append(got, d.Field+" "+d.Live+" "+d.Wanted)
	}
	if d := cmp.Diff([]string{"free long double", "ratio long double", "x.when keyword date"}, got); d != "" {
		t.Error(d)
	}
}
