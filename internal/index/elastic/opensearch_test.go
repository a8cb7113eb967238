package elastic_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic"
	"tutti/internal/index/mapping"
)

// openSearch plays an OpenSearch 2 that returns answers.
func openSearch(t *testing.T, answers ...answer) (*script, string) {
	t.Helper()
	s := &script{t: t, answers: answers}
	t.Cleanup(func() {
		if len(s.answers) > 0 {
			t.Errorf("%d answers were not requested; requests: %q", len(s.answers), s.asked)
		}
	})
	return s, listening(t, identified(openSearch2, s.ServeHTTP))
}

// TestOpenSearchMapping: free-form objects have OpenSearch's type, without parameters, whether from the documents or a mapping file.
func TestOpenSearchMapping(t *testing.T) {
	s, url := openSearch(t, refused(404, "index_not_found_exception", "no such index [a]"), answer{200, done},
		answer{200, `{"b-1":{"aliases":{"b":{}}}}`}, answer{200, `{"b-1":{"mappings":{}}}`}, answer{200, done})
	x := open(t, url)
	if err := x.Ensure(t.Context(), index.Spec{Alias: "a", Known: mapping.Song()}); err != nil {
		t.Fatal(err)
	}
	file := `{"properties":{"more":{"properties":{"info":{"type":"flattened","depth_limit":3}}}}}`
	if err := x.Ensure(t.Context(), index.Spec{Alias: "b", Mapping: []byte(file)}); err != nil {
		t.Fatal(err)
	}
	if made := s.asked[1]; strings.Contains(made, "flattened") || !strings.Contains(made, `"info":{"type":"flat_object"}`) {
		t.Errorf("created with %s", made)
	}
	if want := `PUT /b/_mapping {"properties":{"more":{"properties":{"info":{"type":"flat_object"}}}}}`; s.asked[4] != want {
		t.Errorf("got %s, want %s", s.asked[4], want)
	}
}

// TestUnsuitableIndex: an index that rebuilds its documents is refused, also as a mapping file asks for it; a cluster that does not say is trusted.
func TestUnsuitableIndex(t *testing.T) {
	_, url := openSearch(t, answer{200, `{"a-1":{"settings":{"index":{"derived_source":{"enabled":"true"}}}}}`}, answer{200, `{"a-1":{}}`},
		answer{403, `{"error":"no rights","status":403}`}, answer{404, `{"error":"alias [b] missing","status":404}`})
	x := open(t, url)
	if err := x.CheckStorage(t.Context(), "a"); !errors.Is(err, core.ErrIndexUnsuitable) || !strings.Contains(core.MessageOf(err), "derived_source") {
		t.Errorf("an index with derived documents: %v", err)
	}
	for range 2 {
		if err := x.CheckStorage(t.Context(), "a"); err != nil {
			t.Errorf("an index of which nothing is known: %v", err)
		}
	}
	err := x.Ensure(t.Context(), index.Spec{Alias: "b", Mapping: []byte(`{"settings":{"index":{"mode":"logsdb"}},"mappings":{"properties":{}}}`)})
	if core.CodeOf(err) != core.CodeInvalid || !strings.Contains(core.MessageOf(err), "index.mode is logsdb") {
		t.Errorf("a mapping file: %v", err)
	}
}

// page returns a page of a point in time of total documents, of which these have the given indices, ids and sort values.
func page(total int, hits ...[3]string) answer {
	texts := make([]string, len(hits))
	for i, h := range hits {
		texts[i] = fmt.Sprintf(`{"_index":%q,"_id":%q,"_version":1,"_source":{},"sort":[%s]}`, h[0], h[1], h[2])
	}
	return answer{200, fmt.Sprintf(`{"pit_id":"P","timed_out":false,"_shards":{"failed":0},"hits":{"total":{"value":%d},"hits":[%s]}}`, total, strings.Join(texts, ","))}
}

// TestOpenSearchPages: sequence numbers are unique only within a shard, so a page begins with the documents at the last position of the
// previous one, of which those already returned are omitted.
func TestOpenSearchPages(t *testing.T) {
	first := make([][3]string, 100)
	for i := range first {
		first[i] = [3]string{"a-1", fmt.Sprint(i), fmt.Sprintf(`"k",%d`, i)}
	}
	s, url := openSearch(t, answer{200, `{"pit_id":"O"}`}, page(103, first...),
		page(0, [3]string{"a-1", "99", `"k",99`}, [3]string{"a-2", "99", `"k",99`}, [3]string{"a-1", "other shard", `"k",99`}, [3]string{"a-1", "100", `"k",100`}), answer{200, done})
	var got []string
	err := open(t, url).Stream(t.Context(), "a", index.StreamRequest{Sort: []index.Sort{{Field: field("k", "keyword")}}}, func(hits []index.Hit) error {
		for _, h := range hits {
			got = append(got, h.ID)
			if len(h.Sort) != 1 {
				t.Errorf("document %s has the sort values %s", h.ID, h.Sort)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 103 || !slices.Equal(got[99:], []string{"99", "99", "other shard", "100"}) {
		t.Errorf("got %d documents: %q", len(got), got)
	}
	for i, want := range []string{
		"POST /a/_search/point_in_time ",
		`"sort":[{"k":{"order":"asc","missing":"_last","unmapped_type":"keyword"}},"_seq_no"],"pit":{"id":"O","keep_alive":"5m"},"size":100,"track_total_hits":true}`,
		`"pit":{"id":"P","keep_alive":"5m"},"size":1001,"track_total_hits":false,"search_after":["k",98]}`,
		`DELETE /_search/point_in_time {"pit_id":["P"]}`,
	} {
		if !strings.HasSuffix(s.asked[i], want) {
			t.Errorf("request %d is %s, want %s", i, s.asked[i], want)
		}
	}
}

// TestOpenSearchPositionRepeats: pages of the same position accumulate the documents to omit.
func TestOpenSearchPositionRepeats(t *testing.T) {
	full := make([][3]string, 5000)
	for i := range full {
		full[i] = [3]string{"a-1", fmt.Sprint(i), "7"}
	}
	again := append(slices.Clone(full), [3]string{"a-1", "last", "7"})
	_, url := openSearch(t, answer{200, `{"pit_id":"O"}`}, page(5001, full...), page(0, again...), answer{200, done})
	seen := make(map[string]int)
	err := open(t, url).Scan(t.Context(), "a", core.IndexScope{}, 0, func(id string, _ core.Version) error {
		seen[id]++
		return nil
	})
	if err != nil || len(seen) != 5001 || seen["last"] != 1 || seen["0"] != 1 {
		t.Errorf("got %d documents, %v", len(seen), err)
	}
}

// TestEngines: an engine that is not supported blocks the index with one line that names it and what is needed.
func TestEngines(t *testing.T) {
	const needs = "; tutti needs Elasticsearch 7.17 or later, or OpenSearch 2.7 or later"
	nodes := func(versions ...string) string {
		list := make([]string, len(versions))
		for i, v := range versions {
			list[i] = fmt.Sprintf(`"n%d":{"version":%q}`, i, v)
		}
		return `{"nodes":{` + strings.Join(list, ",") + `}}`
	}
	for name, tt := range map[string]struct {
		status  int
		header  string
		root    string
		nodes   string
		message string // "" for a supported engine
		warning string
	}{
		"Elasticsearch 8":                  {200, "Elasticsearch", elasticsearch8, nodes("8.19.2"), "", ""},
		"Elasticsearch without GET /":      {405, "Elasticsearch", "", nodes("7.17.28"), "", ""},
		"a user without the privilege":     {403, "Elasticsearch", "", "", "", ""},
		"Elasticsearch 10":                 {200, "Elasticsearch", elasticsearch8, nodes("10.0.0"), "", "version=10.0.0 tested=false"},
		"mixed versions":                   {200, "Elasticsearch", elasticsearch8, nodes("8.19.2", "7.16.3"), "the index engine is Elasticsearch 7.16.3" + needs + ": earlier versions are not tested", ""},
		"Elasticsearch 6":                  {200, "", `{"version":{"number":"6.8.23"},"tagline":"You Know, for Search"}`, "", "the index engine is Elasticsearch 6.8.23" + needs + ": earlier versions are not tested", ""},
		"OpenSearch 3":                     {200, "", `{"version":{"distribution":"opensearch","number":"3.2.0"}}`, "", "", ""},
		"OpenSearch 1":                     {200, "", `{"version":{"distribution":"opensearch","number":"1.3.20"}}`, "", "the index engine is OpenSearch 1.3.20" + needs + ": earlier versions have no flat_object fields, and before 2.4 no points in time", ""},
		"OpenSearch without the privilege": {403, "", `{"error":{"type":"security_exception","reason":"no permissions for [cluster:monitor/main] and User [name=u]"},"status":403}`, "", "", ""},
		"another distribution":             {200, "", `{"version":{"distribution":"easysearch","number":"1.0.0"}}`, "", "the index engine is easysearch 1.0.0" + needs, ""},
		"a login page":                     {200, "", "<html>", "", "the index engine is an unknown service, which returned status 200 and text/html" + needs, ""},
		"Solr":                             {302, "", "", "", "the index engine is an unknown service, which returned status 302 and no content type" + needs, ""},
		"no credentials":                   {401, "", `{"error":{"type":"security_exception"}}`, "", "the index rejected the credentials", ""},
		"starting":                         {503, "", "", "", "the index is overloaded", ""},
	} {
		t.Run(name, func(t *testing.T) {
			url := listening(t, func(w http.ResponseWriter, r *http.Request) {
				if tt.header != "" {
					w.Header().Set("X-Elastic-Product", tt.header)
				}
				switch {
				case r.URL.Path == "/":
					w.WriteHeader(tt.status)
					_, _ = w.Write([]byte(tt.root))
				case r.URL.Path == "/_nodes/_all/http" && tt.nodes != "":
					_, _ = w.Write([]byte(tt.nodes))
				default:
					w.WriteHeader(http.StatusNotFound)
					_, _ = w.Write([]byte(`{"error":{"type":"index_not_found_exception","reason":"no such index"},"status":404}`))
				}
			})
			var log logged
			x := open(t, url, func(c *elastic.Config) { c.Logger = log.logger() })
			want := "the index is missing"
			if tt.message != "" {
				want = tt.message
			}
			if err := x.Check(t.Context(), "a"); core.MessageOf(err) != want {
				t.Errorf("got %q, want %q", core.MessageOf(err), want)
			}
			if got := strings.Contains(log.String(), "level=WARN"); got != (tt.warning != "") || !strings.Contains(log.String(), tt.warning) {
				t.Errorf("logged %s", log.String())
			}
		})
	}
}

// TestAnotherEngine: an engine that takes over the address is identified after the connection was made again or a gateway found no node,
// but not on every call.
func TestAnotherEngine(t *testing.T) {
	for name, lost := range map[string]func(http.ResponseWriter){
		"connection": func(w http.ResponseWriter) {
			w.Header().Set("Connection", "close")
			_, _ = w.Write([]byte(`{"id":"P"}`))
		},
		"gateway": func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) },
	} {
		t.Run(name, func(t *testing.T) {
			root, identifications := elasticsearch8, 0
			var opened []string
			url := listening(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/" {
					identifications++
				}
				identified(root, func(w http.ResponseWriter, r *http.Request) {
					if r.Method != http.MethodPost || r.URL.Path == "/_search" {
						_, _ = w.Write([]byte(page(0).body))
						return
					}
					if opened = append(opened, r.URL.Path); len(opened) == 3 {
						lost(w)
						return
					}
					_, _ = w.Write([]byte(`{"id":"P","pit_id":"P"}`))
				})(w, r)
			})
			x := open(t, url)
			for range 5 {
				if len(opened) == 3 {
					root = openSearch2
				}
				err := x.Scan(t.Context(), "a", core.IndexScope{}, 0, func(string, core.Version) error { return context.Canceled })
				if (err != nil) != (name == "gateway" && len(opened) == 3) {
					t.Fatal(err)
				}
			}
			if want := []string{"/a/_pit", "/a/_pit", "/a/_pit", "/a/_search/point_in_time", "/a/_search/point_in_time"}; !slices.Equal(opened, want) {
				t.Errorf("got %q, want %q", opened, want)
			}
			if identifications > 4 {
				t.Errorf("identified %d times", identifications)
			}
		})
	}
}

// nodes answers requests that identify an Elasticsearch with the versions of its nodes, and the health of the cluster.
type nodes struct{ versions atomic.Pointer[string] }

// RoundTrip implements http.RoundTripper.
func (n *nodes) RoundTrip(r *http.Request) (*http.Response, error) {
	answered := httptest.NewRecorder()
	if strings.HasPrefix(r.URL.Path, "/_nodes/") {
		var text strings.Builder
		for i, v := range strings.Fields(*n.versions.Load()) {
			fmt.Fprintf(&text, `,"n%d":{"version":%q}`, i, v)
		}
		_, _ = answered.WriteString(`{"nodes":{` + text.String()[1:] + `}}`)
	} else {
		_, _ = answered.WriteString(elasticsearch8)
	}
	return answered.Result(), nil
}

// TestUpgradedToADefect: a node that is upgraded to a version with a known defect beneath a running tutti is noticed within minutes, although the
// connection stays, and logged once; so is the upgrade that ends it.
func TestUpgradedToADefect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n nodes
		n.versions.Store(new("9.4.1 9.4.1"))
		log := new(logged)
		x := open(t, "http://127.0.0.1:1", func(c *elastic.Config) { c.Logger = slog.New(slog.NewTextHandler(log, nil)) })
		if err := x.SendBy(&n); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct{ versions, defect string }{
			{"9.4.1 9.4.1", ""},
			{"9.4.1 9.5.2", "Elasticsearch 9.5.2 may apply"},
			{"9.5.2 9.5.2", "Elasticsearch 9.5.2 may apply"},
			{"9.5.3 9.5.3", ""},
		} {
			n.versions.Store(&step.versions)
			time.Sleep(6 * time.Minute) // of the bubble's clock
			if got := x.Defect(t.Context()); step.defect == "" && got != "" || !strings.HasPrefix(got, step.defect) {
				t.Errorf("nodes of %s: %q", step.versions, got)
			}
		}
		if got := strings.Count(log.String(), "known defect"); got != 1 {
			t.Errorf("logged %d times: %s", got, log)
		}
	})
}

// TestOpenSearchScores: OpenSearch 3.8 loses documents of pages by a scaled_float, and fails for several values of an unsigned_long, unless it
// computes scores.
func TestOpenSearchScores(t *testing.T) {
	for kind, want := range map[string]bool{"scaled_float": true, "unsigned_long": true, "long": false} {
		s, url := openSearch(t, answer{200, `{"pit_id":"O"}`}, page(0), answer{200, done}, found(`"hits":{"hits":[]}`))
		x, by := open(t, url), []index.Sort{{Field: field("n", kind)}}
		if err := x.Stream(t.Context(), "a", index.StreamRequest{Sort: by}, func([]index.Hit) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if _, err := x.Search(t.Context(), "a", []index.SearchRequest{{Hits: &index.HitsRequest{Sort: by, Size: 1, Source: index.Source{None: true}}}}); err != nil {
			t.Fatal(err)
		}
		for _, at := range []int{1, 3} {
			if got := strings.Contains(s.asked[at], `"track_scores":true`); got != want {
				t.Errorf("%s: %s", kind, s.asked[at])
			}
		}
	}
}

// TestOpenSearchConstants: the bucket of a constant is its value, not the name of the index.
func TestOpenSearchConstants(t *testing.T) {
	_, url := openSearch(t, found(`"hits":{"total":{"value":2},"hits":[]},"aggregations":{"a0t":{"sum_other_doc_count":0,"buckets":[{"key":"a-1","doc_count":2}]}}`))
	f := field("c", "constant_keyword")
	f.Constant = "v"
	got, err := open(t, url).Search(t.Context(), "a", []index.SearchRequest{{Facets: []index.Facet{{Field: f, Buckets: &index.Buckets{Max: 5}}}}})
	if err != nil || len(got[0].Facets[0].Buckets) != 1 || got[0].Facets[0].Buckets[0].Key != "v" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestOpenSearchCountsNoWildcards: the mapping says that wildcard fields have no values by document, whatever the index says, because facets
// and sorts of them are refused, fail or are wrong, and that those without such values in nested objects or from copy_to are not found. Elasticsearch counts and
// finds them.
func TestOpenSearchCountsNoWildcards(t *testing.T) {
	const held = `{"properties":{"a":{"properties":{"w":{"doc_values":true,"type":"wildcard"}}},"c":{"type":"wildcard"},` +
		`"k":{"copy_to":["c"],"fields":{"w":{"type":"wildcard"}},"type":"keyword"},` +
		`"n":{"properties":{"o":{"properties":{"w":{"type":"wildcard"}}},"w":{"doc_values":true,"type":"wildcard"}},"type":"nested"},"type":{"type":"long"}}}`
	const counted = `{"properties":{"a":{"properties":{"w":{"doc_values":false,"type":"wildcard"}}},"c":{"doc_values":false,"index":false,"type":"wildcard"},` +
		`"k":{"copy_to":["c"],"fields":{"w":{"doc_values":false,"type":"wildcard"}},"type":"keyword"},` +
		`"n":{"properties":{"o":{"properties":{"w":{"doc_values":false,"index":false,"type":"wildcard"}}},"w":{"doc_values":false,"type":"wildcard"}},"type":"nested"},"type":{"type":"long"}}}`
	for engine, want := range map[string]string{openSearch2: counted, elasticsearch8: held} {
		s := &script{t: t, answers: []answer{{200, `{"a-1":{"mappings":` + held + `}}`}}}
		got, err := open(t, listening(t, identified(engine, s.ServeHTTP))).Mapping(t.Context(), "a")
		if err != nil || string(got) != want {
			t.Errorf("%s: %v, %s, want %s", engine, err, got, want)
		}
	}
}
