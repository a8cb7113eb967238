//go:build services

package elastic_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/document"
	"tutti/internal/index/elastic/flavour"
	"tutti/internal/index/elastic/transport"
	"tutti/internal/index/mapping"
)

const (
	illegalArgument = "illegal_argument_exception"
	mapperParsing   = "mapper_parsing_exception"
)

// TestRejectedDocuments writes documents that the engine rejects in each of its ways, each between two that it accepts.
func TestRejectedDocuments(t *testing.T) {
	x := cluster(t)
	alias := fresh(t)
	ensure(t, x, index.Spec{Alias: alias, Mapping: []byte(`{"dynamic":"strict","properties":{
		"k":{"type":"keyword"},"l":{"type":"long"},"f":{"type":"flattened","ignore_above":8191},
		"o":{"properties":{"f":{"type":"flattened","ignore_above":8191}}},"n":{"type":"nested","properties":{"k":{"type":"keyword"}}}}}`)})
	engine := engineOf(t)
	openSearch := engine.Product == flavour.OpenSearch
	elasticsearch8 := !openSearch && engine.Version.Major >= 8
	parsing := indexDialect(t).ParsingType
	if parsing == "" {
		parsing = "document_parsing_exception"
	}
	// on returns what OpenSearch, Elasticsearch 7 and later ones return.
	on := func(opensearch, elasticsearch7, later string) string {
		switch {
		case openSearch:
			return opensearch
		case elasticsearch8:
			return later
		default:
			return elasticsearch7
		}
	}
	twice := "Duplicate field 'k'"
	if openSearch && !engine.Version.Less(flavour.Version{Major: 3, Minor: 8}) {
		twice = `Duplicate Object property "k"`
	}
	longest, long := strings.Repeat("x", 32_760), strings.Repeat("x", 32_767)
	levels := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	var nested strings.Builder
	for i := range 210 {
		fmt.Fprintf(&nested, `"nested%d":[{"a":1}],`, i)
	}
	tests := []struct {
		name, doc string
		kind      string // "" for a document that is accepted
		reason    string
		hint      string
	}{
		{"value of another type", `{"l":"x"}`, parsing, "", ""},
		{"object for a keyword", `{"k":{"a":1}}`, parsing, "", ""},
		{"half a document", `{"l":`, parsing, "", ""},
		{"member of the engine", `{"_id":"x"}`, parsing, "is a metadata field", ""},
		{"member twice", `{"k":"a","k":"b"}`, parsing, twice, ""},
		{"number of 1,101 digits", `{"l":1` + strings.Repeat("0", 1100) + `}`, parsing, "", ""},
		{"name of dots", `{".":1}`, parsing, "", ""},
		{"name of spaces", `{"o":{" ":1}}`, "document_parsing_exception", "", ""},
		{"long keyword", `{"k":"` + long + `"}`, on(illegalArgument, illegalArgument, parsing), `immense term in field="k"`, "the field k has more than 32,766 bytes"},
		{"long keyword of an element", `{"n":[{"k":"` + long + `"}]}`, on(illegalArgument, illegalArgument, parsing), `immense term in field="n.k"`, "the field n.k has"},
		{"longest keyword", `{"k":"` + longest + `"}`, "", "", ""},
		{"long value in a free-form object", `{"o":{"f":{"a":["b","` + long + `"]}}}`, on(illegalArgument, "", ""), `immense term in field="o.f._value"`, "the free-form object o.f has"},
		{"long path and value", `{"f":{"a":"` + long[1:] + `"}}`, on(illegalArgument, "", ""), `immense term in field="f._valueAndPath"`, "the free-form object f has"},
		{"longest value in a free-form object", `{"f":{"a":"` + longest + `"}}`, "", "", ""},
		{"long name in a free-form object", `{"f":{"` + long + `":"x"}}`, on(illegalArgument, parsing, parsing), "immense", "the free-form object f has"},
		{"free-form object of 25 levels", `{"f":` + levels(25) + `}`, on("", parsing, parsing), "maximum depth limit of [20]", ""},
		{"free-form object of 399 levels", `{"f":` + levels(399) + `}`, on("", parsing, parsing), "maximum depth limit of [20]", ""},
		{"fields of 25 levels", levels(25), on(illegalArgument, illegalArgument, mapperParsing), "Limit of mapping depth [20]", "at most 20 levels"},
		{"fields of 400 levels", levels(400), illegalArgument, "is deeper than any mapping", ""},
		{"210 nested fields", `{` + nested.String() + `"l":1}`, illegalArgument, "Limit of nested fields [200]", "index.limits.nestedFields"},
		{"100,001 nested elements", `{"n":[` + strings.Repeat(`{"k":"x"},`, 100_000) + `{"k":"x"}]}`, parsing, "allowed limit of [100000]", "index.limits.nestedObjects"},
	}
	limits, err := x.Limits(t.Context(), alias)
	if err != nil || limits.AllTerms != openSearch {
		t.Errorf("the limits are %+v, %v", limits, err)
	}
	known, err := mapping.Parse([]byte(`{"properties":{"f":{"type":"flattened","ignore_above":8191},"o":{"properties":{"f":{"type":"flattened","ignore_above":8191}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checker := document.Checker{AllTerms: limits.AllTerms}
			if _, err := checker.Check(known, []byte(tt.doc), nil); strings.Contains(tt.hint, "free-form") && (err == nil) != (tt.kind == "") {
				t.Errorf("the check at submission: %v", err)
			}
			neighbour := func(name string) core.Write {
				return put(fmt.Sprint(name, i), 1, fmt.Sprintf(`{"l":%d,"new%d":1}`, i, i))
			}
			got := write(t, x, alias, neighbour("before"), put(fmt.Sprint(i), 1, tt.doc), neighbour("after"))
			if got[0].Outcome != core.OutcomeIndexed || got[2].Outcome != core.OutcomeIndexed {
				t.Errorf("the neighbours: %.300v, %.300v", got[0], got[2])
			}
			r, want := got[1], core.OutcomeRejected
			if tt.kind == "" {
				want, tt.reason, tt.hint = core.OutcomeIndexed, "", ""
			}
			if r.Outcome != want || r.Type != tt.kind || !strings.Contains(r.Reason, tt.reason) || !strings.Contains(r.Hint, tt.hint) || (tt.hint == "") != (r.Hint == "") {
				t.Errorf("got %s %s %s, hint %q; want %s %s with %q, hint with %q", r.Outcome, r.Type, r.Reason, r.Hint, want, tt.kind, tt.reason, tt.hint)
			}
		})
	}
}

// TestRejectedRequests has the engine reject whole requests in each of its ways, and accept the same documents afterwards.
func TestRejectedRequests(t *testing.T) {
	x := cluster(t)
	alias := fresh(t)
	ensure(t, x, index.Spec{Alias: alias, Mapping: []byte(`{"dynamic":"strict","properties":{"l":{"type":"long"},"e":{"type":"object","enabled":false}}}`)})
	writes := []core.Write{put("a", 1, `{"l":1,"e":{"a":"`+strings.Repeat("x", 3000)+`"}}`), put("b", 1, `{"new":1}`), remove("c", 1)}
	setting := func(name, value string) {
		admin(t, http.MethodPut, "/_cluster/settings", `{"transient":{"`+name+`":`+value+`}}`)
	}
	for _, tt := range []struct {
		setting, value string
		code           core.Code
		message, kind  string
	}{
		{"network.breaker.inflight_requests.limit", `"1kb"`, core.CodeOverloaded, "the index is overloaded", "circuit_breaking_exception"},
		{"cluster.blocks.read_only", "true", core.CodeIndexBlocked, "the index is blocked", "cluster_block_exception"},
		{
			"cluster.blocks.read_only_allow_delete", "true", core.CodeIndexBlocked, "a disk of the index engine is over its flood-stage watermark",
			"cluster_block_exception",
		},
	} {
		t.Run(tt.setting, func(t *testing.T) {
			t.Cleanup(func() { setting(tt.setting, "null") })
			setting(tt.setting, tt.value)
			if engine := engineOf(t); tt.code == core.CodeOverloaded && engine.Product == flavour.Elasticsearch && engine.Version.Major >= 9 {
				return // it reads the body in parts, each of which is below the limit
			}
			results, err := x.Write(t.Context(), batch(x, alias, writes...))
			if core.CodeOf(err) != tt.code || core.MessageOf(err) != tt.message || transport.TypeOf(err) != tt.kind {
				t.Errorf("got %+v, %v; want %s %q", results, err, tt.code, tt.message)
			}
			if tt.code == core.CodeIndexBlocked {
				wantError(t, x.Check(t.Context(), alias), tt.code, tt.message)
			}
		})
	}
	if engineOf(t).Product == flavour.OpenSearch { // which sets it while all disks are nearly full
		t.Run("cluster.blocks.create_index", func(t *testing.T) {
			t.Cleanup(func() { setting("cluster.blocks.create_index", "null") })
			setting("cluster.blocks.create_index", "true")
			err := x.Ensure(t.Context(), index.Spec{Alias: fresh(t), Known: mapping.Song()})
			wantError(t, err, core.CodeIndexBlocked, "the index engine allows no new indices")
			if errors.Is(err, core.ErrIndexForbidden) || !strings.Contains(core.DisplayOf(err), "free disk space") {
				t.Errorf("got %q", core.DisplayOf(err))
			}
		})
	}
	t.Run("over 100 MB", func(t *testing.T) {
		large := `{"e":{"a":"` + strings.Repeat("x", 51<<20) + `"}}`
		_, err := x.Write(t.Context(), batch(x, alias, put("d", 1, large), put("e", 1, large)))
		wantError(t, err, core.CodeTooLarge, "the request is too large for the index")
	})
	if err := x.Check(t.Context(), alias); err != nil {
		t.Error(err)
	}
	for i, r := range write(t, x, alias, writes...) {
		if r.Outcome != core.OutcomeIndexed && r.Outcome != core.OutcomeRemoved {
			t.Errorf("item %d afterwards: %+v", i, r)
		}
	}
}

// TestMetadataBlock: while the mapping may not be changed, documents without new fields are written, and the others wait.
func TestMetadataBlock(t *testing.T) {
	x := cluster(t)
	alias := fresh(t)
	ensure(t, x, index.Spec{Alias: alias, Mapping: []byte(`{"dynamic":"strict","properties":{"l":{"type":"long"}}}`)})
	name := PhysicalIndex(t, alias)
	block := func(value string) {
		admin(t, http.MethodPut, "/"+name+"/_settings", `{"index.blocks.metadata":`+value+`}`)
	}
	t.Cleanup(func() { block("null") })
	block("true")
	got := write(t, x, alias, put("a", 1, `{"l":1}`), put("b", 1, `{"new":1}`), remove("c", 1))
	if got[0].Outcome != core.OutcomeIndexed || got[2].Outcome != core.OutcomeRemoved ||
		got[1].Outcome != core.OutcomeRetry || got[1].Code != core.CodeIndexBlocked || got[1].Type != "cluster_block_exception" {
		t.Errorf("got %+v", got)
	}
	block("null")
	if got := write(t, x, alias, put("b", 1, `{"new":1}`)); got[0].Outcome != core.OutcomeIndexed {
		t.Errorf("afterwards: %+v", got)
	}
}
