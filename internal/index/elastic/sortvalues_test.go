package elastic_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
)

// byID asks for a page in the order of the ids, after a place where one is given.
func byID(after ...string) []index.SearchRequest {
	h := &index.HitsRequest{Size: 1, Sort: []index.Sort{{Field: field("_id", "keyword")}}, Source: index.Source{None: true}}
	for _, value := range after {
		h.After = append(h.After, json.RawMessage(value))
	}
	return []index.SearchRequest{{Hits: h}}
}

// sampleSize is the look at some documents, whose ids are 1, 2 and so on, of an alias with some shards.
func sampleSize(shards int, sources ...string) answer {
	hits := make([]string, len(sources))
	for i, source := range sources {
		hits[i] = fmt.Sprintf(`{"_id":"%d","_source":%s,"sort":[0]}`, i+1, source)
	}
	return answer{200, fmt.Sprintf(`{"timed_out":false,"_shards":{"total":%d,"failed":0},"hits":{"hits":[%s]}}`, shards, strings.Join(hits, ","))}
}

// TestIdentity: a field stands for the ids where it holds them in every document, as they are.
func TestIdentity(t *testing.T) {
	mapped := func(fields ...string) *answer {
		var indices []string
		for i, f := range fields {
			indices = append(indices, fmt.Sprintf(`"a-%d":{"mappings":{"properties":{"uid":%s,"vid":{"type":"keyword"}}}}`, i, f))
		}
		return &answer{200, "{" + strings.Join(indices, ",") + "}"}
	}
	const keyword = `{"type":"keyword"}`
	for _, c := range []struct {
		name    string
		sources []string
		// mappings are what the cluster is asked for where some field holds all ids.
		mappings *answer
		want     string
	}{
		{"a field with the ids of all", []string{`{"uid":"1"}`, `{"uid":"2"}`, `{"uid":"3"}`}, mapped(keyword), "uid"},
		{"a field behind others", []string{`{"n":5,"o":{"uid":"x"},"uid":"1"}`}, mapped(keyword), "uid"},
		{"a field with the ids of all but one", []string{`{"uid":"1"}`, `{"uid":"2"}`, `{"uid":"other"}`}, nil, "_seq_no"},
		{"a field that one document lacks", []string{`{"uid":"1"}`, `{}`, `{"uid":"3"}`}, nil, "_seq_no"},
		{"one of two fields has all", []string{`{"uid":"1","vid":"1"}`, `{"uid":"x","vid":"2"}`}, mapped(keyword), "vid"},
		{"numbers that look like the ids", []string{`{"uid":1}`}, nil, "_seq_no"},
		{"texts in a list", []string{`{"uid":["1"]}`}, nil, "_seq_no"},
		{"a keyword that is changed before it is kept", []string{`{"uid":"1"}`}, mapped(`{"type":"keyword","normalizer":"lowercase"}`), "_seq_no"},
		{"the other field where one is changed", []string{`{"uid":"1","vid":"1"}`}, mapped(`{"type":"keyword","normalizer":"lowercase"}`), "vid"},
		{"a text", []string{`{"uid":"1"}`}, mapped(`{"type":"text"}`), "_seq_no"},
		{"a keyword in each of two indices", []string{`{"uid":"1"}`}, mapped(keyword, keyword), "uid"},
		{"a keyword in one of two indices", []string{`{"uid":"1"}`}, mapped(keyword, `{"type":"text"}`), "_seq_no"},
	} {
		t.Run(c.name, func(t *testing.T) {
			answers := []answer{sampleSize(1, c.sources...)}
			if c.mappings != nil {
				answers = append(answers, *c.mappings)
			}
			page := found(`"hits":{"hits":[{"_id":"1","sort":["1"]}]}`)
			if c.want == "_seq_no" {
				answers, page = append(answers, answer{200, settingsOf(1)}), seqNoSort("", 1)
			}
			x, s := play(t, append(answers, page)...)
			if _, err := x.Search(t.Context(), "a", byID()); err != nil {
				t.Fatal(err)
			}
			if asked := s.asked[len(s.asked)-1]; !strings.Contains(asked, `"sort":[{"`+c.want+`":{`) {
				t.Errorf("asked %s, want the order of %s", asked, c.want)
			}
		})
	}
}

// TestPlacesOfIDs: a page begins after an id where a field holds the ids, and nowhere else.
func TestPlacesOfIDs(t *testing.T) {
	page := found(`"hits":{"hits":[{"_id":"2","sort":["2"]}]}`)
	held, free := []answer{sampleSize(3, `{"uid":"1"}`), {200, keywordID}}, []answer{sampleSize(1, `{}`), {200, settingsOf(1)}}
	for _, c := range []struct {
		name    string
		answers []answer
		after   string
		valid   bool
	}{
		{"after an id", append(held, page), `"1"`, true},
		{"after an id with space around it", append(held, page), " \"1\"\n", true},
		{"after a number where a field has the ids", held, `17`, false},
		{"after nothing where a field has the ids", held, `null`, false},
		{"after a number where none has", free, `17`, false},
		{"after an id where none has", free, `"17"`, false},
		{"after nothing where none has", free, `null`, false},
		{"after an id where the field has others by now", append(held, found(`"hits":{"hits":[{"_id":"2","sort":["x"]}]}`), answer{200, settingsOf(1)}), `"1"`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, s := play(t, c.answers...)
			_, err := x.Search(t.Context(), "a", byID(c.after))
			if !c.valid {
				wantError(t, err, core.CodeInvalid, invalidCursor)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if asked := s.asked[len(s.asked)-1]; !strings.Contains(asked, `"search_after":[`+strings.TrimSpace(c.after)+`]`) {
				t.Errorf("asked %s", asked)
			}
		})
	}
}

// TestAbsentPlaces: that a document has no value is said by null, whatever the cluster has for it.
func TestAbsentPlaces(t *testing.T) {
	const high, low = "9223372036854775807", "-9223372036854775808"
	for _, c := range []struct {
		kind      string
		high, low string
	}{
		{"long", high, low},
		{"boolean", high, low},
		{"date", high, low},
		{"date_nanos", high, low},
		{"byte", high, low},
		{"double", `"Infinity"`, `"-Infinity"`},
		{"half_float", `"Infinity"`, `"-Infinity"`},
		{"scaled_float", `"Infinity"`, `"-Infinity"`},
		{"unsigned_long", "18446744073709551615", "0"},
		{"keyword", "null", "null"},
		{"ip", "null", "null"},
		{"geo_point", "null", "null"},
	} {
		for n := range 4 {
			s := index.Sort{Field: field("f", c.kind), Descending: n&1 > 0, MissingFirst: n&2 > 0}
			word, other := c.high, c.low
			if s.Descending != s.MissingFirst {
				word, other = c.low, c.high
			}
			t.Run(fmt.Sprintf("%s downwards %t missing first %t", c.kind, s.Descending, s.MissingFirst), func(t *testing.T) {
				page := found(`"hits":{"hits":[{"_id":"1","sort":[` + other + `]},{"_id":"2","sort":[` + word + `]}]}`)
				x, asked := play(t, page, page)
				h := &index.HitsRequest{Size: 2, Sort: []index.Sort{s}, Source: index.Source{None: true}}
				got, err := x.Search(t.Context(), "a", []index.SearchRequest{{Hits: h}})
				if err != nil {
					t.Fatal(err)
				}
				if hits := got[0].Hits; string(hits[0].Sort[0]) != other || string(hits[1].Sort[0]) != "null" {
					t.Errorf("got %s and %s, want %s and null", hits[0].Sort, hits[1].Sort, other)
				}
				h.After = []json.RawMessage{[]byte(" null ")}
				if _, err := x.Search(t.Context(), "a", []index.SearchRequest{{Hits: h}}); err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(asked.asked[1], `"search_after":[`+word+`]`) || string(h.After[0]) != " null " {
					t.Errorf("asked %s after %s", asked.asked[1], h.After)
				}
			})
		}
	}
}
