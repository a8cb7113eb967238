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

// sampled is the look at some documents, whose ids are 1, 2 and so on, of an alias with some shards.
func sampled(shards int, sources ...string) answer {
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
			answers := []answer{sampled(1, c.sources...)}
			if c.mappings != nil {
				answers = append(answers, *c.mappings)
			}
			page := found(`"hits":{"hits":[{"_id":"1","sort":["1"]}]}`)
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

// TestPlacesOfIDs: a place is gone on from in the order that it was given in, or not at all.
func TestPlacesOfIDs(t *testing.T) {
	const (
		changed = "the place from which to go on was given in another order of the ids, as the index has changed"
		shared  = "the order of the ids cannot be gone on in: the documents hold their ids in no field, and the index has several shards"
	)
	page := found(`"hits":{"hits":[{"_id":"2","sort":["2"]}]}`)
	held, free := []answer{sampled(3, `{"uid":"1"}`), {200, keywordID}}, []answer{sampled(1, `{}`)}
	for _, c := range []struct {
		name    string
		answers []answer
		after   []string
		message string
	}{
		{"after an id", append(held, page), []string{`"1"`}, ""},
		{"after an id with space around it", append(held, page), []string{" \"1\"\n"}, ""},
		{"after a number where a field has the ids", held, []string{`17`}, changed},
		{"after nothing where a field has the ids", held, []string{`null`}, changed},
		{"after a number where none has", append(free, found(`"hits":{"hits":[{"_id":"2","sort":[18]}]}`)), []string{`17`}, ""},
		{"after an id where none has", free, []string{`"17"`}, changed},
		{"after nothing where none has", free, []string{`null`}, changed},
		{"the first page of several shards", []answer{sampled(2, `{}`), found(`"hits":{"hits":[{"_id":"2","sort":[18]}]}`)}, nil, ""},
		{"after a number in several shards", []answer{sampled(2, `{}`)}, []string{`17`}, shared},
		{
			"after an id where the field has others by now",
			append(held, found(`"hits":{"hits":[{"_id":"2","sort":["x"]}]}`)),
			[]string{`"1"`},
			changed,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, s := play(t, c.answers...)
			_, err := x.Search(t.Context(), "a", byID(c.after...))
			if c.message != "" {
				wantError(t, err, core.CodeInvalid, c.message)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			asked := s.asked[len(s.asked)-1]
			if c.after != nil && !strings.Contains(asked, `"search_after":[`+strings.TrimSpace(c.after[0])+`]`) {
				t.Errorf("asked %s", asked)
			}
		})
	}
	t.Run("after a number in several shards whose field was given up", func(t *testing.T) {
		wrong := found(`"hits":{"hits":[{"_id":"2","sort":["x"]}]}`)
		x, _ := play(t, append(held, wrong, found(`"hits":{"hits":[{"_id":"2","sort":[18]}]}`))...)
		if _, err := x.Search(t.Context(), "a", byID()); err != nil {
			t.Fatal(err)
		}
		_, err := x.Search(t.Context(), "a", byID(`18`))
		wantError(t, err, core.CodeInvalid, shared)
	})
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
