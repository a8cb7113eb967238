package mapping_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/index/mapping"
)

func TestCompare(t *testing.T) {
	for name, c := range map[string]struct {
		wanted, live string
		want         []string
	}{
		"the same": {
			`{"dynamic":true,"properties":{"a":{"type":"keyword","index":true,"ignore_above":"256"},"b.c":{"type":"text","copy_to":"a","norms":true}}}`,
			`{"dynamic":"true","properties":{"a":{"type":"keyword","ignore_above":256},"b":{"properties":{"c":{"type":"text","copy_to":["a"]}}}}}`, nil,
		},
		"new fields": {
			`{"properties":{"a":{"type":"keyword","fields":{"raw":{"type":"text"}}},"n":{"type":"nested","properties":{"b":{"type":"long"}}}}}`,
			`{"properties":{"a":{"type":"keyword"}}}`,
			[]string{`a.raw: "text" "" add`, `n: "nested" "" add`, `n.b: "long" "" add`},
		},
		"other types": {
			`{"properties":{"a":{"type":"long"},"f":{"type":"nested","properties":{"b":{"type":"long"}}},"o":{"properties":{"x":{"type":"date"}}}}}`,
			`{"properties":{"a":{"type":"keyword","ignore_above":9},"f":{"properties":{"b":{"type":"text"}}},"o":{"properties":{"x":{"type":"keyword"}}}}}`,
			[]string{`a: "long" "keyword ignore_above=9" rebuild`, `f: "nested" "object" rebuild`, `o.x: "date" "keyword" rebuild`},
		},
		"parameters": {
			`{"properties":{"a":{"type":"keyword"},"b":{"type":"date","format":"yyyy","ignore_malformed":true},"c":{"type":"text","norms":false},"d":{"type":"text"}}}`,
			`{"properties":{"a":{"type":"keyword","ignore_above":9},"b":{"type":"date"},"c":{"type":"text"},"d":{"type":"text","norms":false}}}`,
			[]string{
				`a: "keyword" "keyword ignore_above=9" update`, `b: "date format=yyyy ignore_malformed=true" "date" rebuild`,
				`c: "text norms=false" "text" update`, `d: "text" "text norms=false" rebuild`,
			},
		},
		"only in the index": {
			`{"properties":{"a":{"properties":{"b":{"type":"long"}}}}}`,
			`{"dynamic":"false","_meta":{"x":1},"properties":{"a":{"enabled":true,"properties":{"b":{"type":"long"},"c":{"type":"long"}}},"n":{"type":"nested","properties":{"x":{"type":"long"}}}}}`,
			[]string{`a.c: "" "long" none`, `n: "" "nested" none`},
		},
		"the mapping's own parameters": {
			`{"dynamic":"strict","_source":{"enabled":false}}`, `{"dynamic":"false"}`,
			[]string{`(mapping): "object _source={"enabled":"false"} dynamic=strict" "object dynamic=false" rebuild`},
		},
		"a mapping that can be replaced": {
			`{"dynamic":"strict","dynamic_templates":[{"a":{"mapping":{"type":"keyword"}}}]}`, `{"dynamic":"false"}`,
			[]string{`(mapping): "object dynamic=strict dynamic_templates={"a":{"mapping":{"type":"keyword"}}}" "object dynamic=false" update`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range mapping.Compare(parse(t, c.wanted), parse(t, c.live)) {
				got = append(got, fmt.Sprintf("%s: \"%s\" \"%s\" %s", d.Field, d.Wanted, d.Live, d.Change))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestContradiction(t *testing.T) {
	live := parse(t, `{"properties":{"a":{"type":"keyword"},"b":{"type":"keyword"}}}`)
	for file, want := range map[string]string{
		`{"properties":{"a":{"type":"keyword","ignore_above":1},"c":{"type":"long"}}}`: "",
		`{"properties":{"b":{"type":"long"}}}`:                                         `the field "b" is keyword in the index and long in the mapping`,
		`{"properties":{"a":{"type":"date"},"b":{"type":"long"}}}`:                     `the field "a" is keyword in the index and date in the mapping, and 1 more differ`,
	} {
		if got := mapping.Contradiction(mapping.Compare(parse(t, file), live)); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}
