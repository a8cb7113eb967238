package elastic_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic"
)

const invalidCursor = "the cursor is not valid: it was changed, or returned in another order or by another version"

// cursorKey is that of the processes of these tests.
var cursorKey = bytes.Repeat([]byte{7}, elastic.CursorKeyBytes)

// seqNoSort is a page of documents of the index a-1, whose ids are d0, d1 and so on, by their sequence numbers, which other values
// stand before.
func seqNoSort(before string, numbers ...int) answer {
	hits := make([]string, len(numbers))
	for i, number := range numbers {
		hits[i] = fmt.Sprintf(`{"_index":"a-1","_id":"d%d","sort":[%s%d]}`, i, before, number)
	}
	return found(`"hits":{"total":{"value":9},"hits":[` + strings.Join(hits, ",") + `]}`)
}

// settingsOf are the settings of the indices a-1, a-2 and so on, of the given numbers.
func settingsOf(numbers ...int) string {
	all := make([]string, len(numbers))
	for i, number := range numbers {
		all[i] = fmt.Sprintf(setting, number, 1)
	}
	return "{" + strings.Join(all, ",") + "}"
}

// keyed is play with the key of cursors, on the index a-1.
func keyed(t *testing.T, key []byte, answers ...answer) (*elastic.Index, *script) {
	t.Helper()
	s := &script{t: t, answers: answers, settings: settingsOf(1)}
	x := open(t, serving(t, s.ServeHTTP), func(c *elastic.Config) { c.CursorKey = key })
	t.Cleanup(func() {
		if len(s.answers) > 0 {
			t.Errorf("%d answers were not asked for; asked: %q", len(s.answers), s.asked)
		}
	})
	return x, s
}

// places returns the places of the documents that a search finds.
func places(t *testing.T, x *elastic.Index, alias string, h index.HitsRequest) [][]json.RawMessage {
	t.Helper()
	h.Size, h.Source = 3, index.Source{None: true}
	got, err := x.Search(t.Context(), alias, []index.SearchRequest{{Hits: &h}})
	if err != nil {
		t.Fatal(err)
	}
	var all [][]json.RawMessage
	for _, hit := range got[0].Hits {
		all = append(all, hit.Sort)
	}
	return all
}

// TestCursors: without a field that holds the ids a cursor reveals nothing, and each page starts after the previous ones, in every
// process with the same key.
func TestCursors(t *testing.T) {
	id, down, k := index.Sort{Field: field("_id", "keyword")}, index.Sort{Field: field("_id", "keyword"), Descending: true}, index.Sort{Field: field("k", "keyword")}
	without := func(number int, ids ...string) string {
		var all []string
		for _, id := range ids {
			all = append(all, fmt.Sprintf(`{"bool":{"filter":[{"ids":{"values":[%q]}},{"term":{"_index":"a-1"}},{"term":{"_seq_no":%d}}]}}`, id, number))
		}
		return `"query":{"bool":{"filter":[{"match_all":{}}],"must_not":[` + strings.Join(all, ",") + `]}},"sort":[`
	}
	const scored = `"query":{"function_score":{"boost_mode":"replace","random_score":{"field":"_seq_no","seed":`
	for _, c := range []struct {
		name       string
		by         []index.Sort
		restricted bool
		shards     int
		page       answer
		// after is the document of the page that the next one begins after.
		after int
		want  []string
	}{
		{"alone", []index.Sort{id}, false, 1, seqNoSort("", 4, 5, 6), 1, []string{without(5, "d1"), `"search_after":[4]`}},
		{"downwards", []index.Sort{down}, false, 1, seqNoSort("", 6, 5, 4), 1, []string{without(5, "d1"), `"search_after":[6]`}},
		{"the first number", []index.Sort{id}, false, 1, seqNoSort("", 0, 1), 0, []string{without(0, "d0"), `"search_after":[-1]`}},
		{"behind a key", []index.Sort{k, id}, false, 1, seqNoSort(`"x",`, 4, 5), 1, []string{without(5, "d1"), `"search_after":["x",4]`}},
		{"before a key", []index.Sort{id, k}, false, 1, seqNoSort("", 4, 5), 1, []string{without(5, "d1") + `{"_seq_no":{"order":"asc"}}]`, `"search_after":[4]`}},
		{"a number in several shards", []index.Sort{id}, false, 3, seqNoSort("", 5, 5, 5), 1, []string{without(5, "d0", "d1"), `"search_after":[4]`}},
		{"the next number", []index.Sort{id}, false, 3, seqNoSort("", 5, 5, 6), 2, []string{without(6, "d2"), `"search_after":[5]`}},
		{"restricted in one shard", []index.Sort{id}, true, 1, seqNoSort("", 4, 5), 1, []string{without(5, "d1"), `"search_after":[4]`}},
		{
			"restricted in several shards",
			[]index.Sort{k, id},
			true, 3, seqNoSort(`"x",1.7881393E-7,`, 4, 5), 1,
			[]string{scored, `"must_not"`, `{"_score":{"order":"asc"}},{"_seq_no":{"order":"asc"}}]`, `"search_after":["x",1.7881393432617188e-07,4]`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			first, asked := keyed(t, cursorKey, sampleSize(c.shards, `{}`), c.page)
			all := places(t, first, "a", index.HitsRequest{Sort: c.by, Restricted: c.restricted})
			if strings.Contains(asked.asked[1], scored) != (c.restricted && c.shards > 1) {
				t.Errorf("asked %s", asked.asked[1])
			}
			after := all[c.after]
			if len(after) != len(c.by) {
				t.Fatalf("got the place %s", after)
			}
			second, asked := keyed(t, cursorKey, sampleSize(c.shards, `{}`), c.page)
			again := places(t, second, "a", index.HitsRequest{Sort: c.by, Restricted: c.restricted, After: after})
			for _, part := range c.want {
				if !strings.Contains(asked.asked[1], part) {
					t.Errorf("asked %s, want %s", asked.asked[1], part)
				}
			}
			if len(again) == 0 {
				t.Error("nothing was found")
			}
		})
	}
	t.Run("over several pages", func(t *testing.T) {
		x, s := keyed(t, cursorKey, sampleSize(3, `{}`), seqNoSort("", 5), found(`"hits":{"hits":[{"_index":"a-1","_id":"e","sort":[5]}]}`), seqNoSort(""))
		one := places(t, x, "a", index.HitsRequest{Sort: []index.Sort{id}})
		two := places(t, x, "a", index.HitsRequest{Sort: []index.Sort{id}, After: one[0]})
		places(t, x, "a", index.HitsRequest{Sort: []index.Sort{id}, After: two[0]})
		if !strings.Contains(s.asked[3], without(5, "d0", "e")) {
			t.Errorf("asked %s", s.asked[3])
		}
	})
	t.Run("the total is of all documents", func(t *testing.T) {
		x, s := keyed(t, cursorKey, sampleSize(1, `{}`), seqNoSort("", 4, 5), answer{200, `{"responses":[{"timed_out":false,"_shards":{"failed":0},"hits":{"hits":[]}},` +
			`{"timed_out":false,"_shards":{"failed":0},"hits":{"total":{"value":2},"hits":[]}}]}`})
		after := places(t, x, "a", index.HitsRequest{Sort: []index.Sort{id}})[1]
		got, err := x.Search(t.Context(), "a", []index.SearchRequest{{Total: true, Hits: &index.HitsRequest{Size: 3, Sort: []index.Sort{id}, After: after}}})
		if err != nil || got[0].Total != 2 || !strings.Contains(s.asked[2], `{"size":0,"track_total_hits":true,"query":{"match_all":{}}}`) {
			t.Errorf("got %+v, %v, asked %s", got, err, s.asked[2])
		}
	})
	t.Run("where a field has the ids by now", func(t *testing.T) {
		x, _ := keyed(t, cursorKey, sampleSize(1, `{}`), seqNoSort("", 4, 5))
		after := places(t, x, "a", index.HitsRequest{Sort: []index.Sort{id}})[0]
		y, s := keyed(t, cursorKey, sampleSize(1, `{"uid":"1"}`), answer{200, keywordID}, seqNoSort("", 5))
		places(t, y, "a", index.HitsRequest{Sort: []index.Sort{id}, After: after})
		if !strings.Contains(s.asked[2], `"sort":[{"_seq_no":`) {
			t.Errorf("asked %s", s.asked[2])
		}
	})
	t.Run("a page without numbers", func(t *testing.T) {
		for _, raw := range []string{`"x"`, ``} {
			x, _ := keyed(t, cursorKey, sampleSize(1, `{}`), found(`"hits":{"hits":[{"_index":"a-1","_id":"1","sort":[`+raw+`]}]}`))
			_, err := x.Search(t.Context(), "a", byID())
			wantError(t, err, core.CodeUnavailable, "the index returned an unexpected response")
		}
	})
}

// TestCursorsTellNothing: a cursor depends on the document and the alias, and is as long for a high sequence number as for a low one.
func TestCursorsTellNothing(t *testing.T) {
	x, _ := keyed(t, cursorKey, sampleSize(1, `{}`), seqNoSort("", 1, 1<<40, 1<<50), seqNoSort("", 1), sampleSize(1, `{}`), seqNoSort("", 1))
	h := index.HitsRequest{Sort: []index.Sort{{Field: field("_id", "keyword")}}, Restricted: true}
	all := places(t, x, "a", h)
	for _, place := range all {
		if len(place[0]) != len(all[0][0]) {
			t.Errorf("cursors %s and %s", place, all[0])
		}
		plain, err := base64.RawURLEncoding.DecodeString(string(bytes.Trim(place[0], `"`)))
		if err != nil || bytes.Contains(plain, []byte("a-1")) {
			t.Errorf("the cursor %q, %v", plain, err)
		}
	}
	if again := places(t, x, "a", h); !bytes.Equal(again[0][0], all[0][0]) {
		t.Errorf("the cursor of the same document is %s, then %s", all[0], again[0])
	}
	nonces := map[string]bool{}
	for _, place := range append(all, places(t, x, "b", h)[0]) {
		plain, err := base64.RawURLEncoding.DecodeString(string(bytes.Trim(place[0], `"`)))
		if err != nil {
			t.Fatal(err)
		}
		nonces[string(plain[:12])] = true // AES-GCM is not secure if a nonce is used for two texts
	}
	if len(nonces) != 4 {
		t.Errorf("%d nonces of 3 documents of one alias and one of another, want 4", len(nonces))
	}
}

// TestForeignCursors: no cursor is valid that was changed, or that is another index's, another store's or another order's.
func TestForeignCursors(t *testing.T) {
	h := index.HitsRequest{Sort: []index.Sort{{Field: field("_id", "keyword")}}}
	cursor := func(shards int, restricted bool) json.RawMessage {
		x, _ := keyed(t, cursorKey, sampleSize(shards, `{}`), found(`"hits":{"hits":[{"_index":"a-1","_id":"d10","sort":[5]}]}`))
		h := h
		h.Restricted = restricted
		return places(t, x, "a", h)[0][0]
	}
	own := cursor(3, false)
	refuses := func(name string, x *elastic.Index, alias string, h index.HitsRequest, after json.RawMessage) {
		t.Helper()
		h.Size, h.After = 1, []json.RawMessage{after}
		_, err := x.Search(t.Context(), alias, []index.SearchRequest{{Hits: &h}})
		if core.CodeOf(err) != core.CodeInvalid || core.MessageOf(err) != invalidCursor {
			t.Errorf("%s, %s: %v", name, after, err)
		}
	}
	x, _ := keyed(t, cursorKey, sampleSize(3, `{}`))
	for at := 1; at < len(own)-1; at++ {
		other := bytes.Clone(own)
		if other[at]++; other[at] == '\\' || own[at] == 'z' {
			other[at] = '0'
		}
		refuses("changed", x, "a", h, other)
	}
	refuses("shortened", x, "a", h, append(bytes.Clone(own[:20]), '"'))
	refuses("empty", x, "a", h, json.RawMessage(`""`))
	refuses("with more behind it", x, "a", h, append(append(bytes.Clone(own[:len(own)-1]), "AA"...), '"'))
	restricted := h
	restricted.Restricted = true
	refuses("of an order that tells more", x, "a", restricted, own)
	y, _ := keyed(t, cursorKey, sampleSize(1, `{}`))
	refuses("of another index", y, "b", h, own)
	z, _ := keyed(t, nil, sampleSize(1, `{}`))
	refuses("of another key", z, "a", h, own)
}

// TestCursorsOfAnotherIndex: once the alias has other indices, their sequence numbers are unrelated to those in cursors.
func TestCursorsOfAnotherIndex(t *testing.T) {
	h := index.HitsRequest{Sort: []index.Sort{{Field: field("_id", "keyword")}}}
	for _, c := range []struct {
		name         string
		before, then []int
		valid        bool
	}{
		{"the same index", []int{1}, []int{1}, true},
		{"the same indices in another order", []int{1, 2, 3, 4, 5, 6, 7}, []int{7, 6, 5, 4, 3, 2, 1}, true},
		{"moved", []int{1}, []int{2}, false},
		{"one more", []int{1}, []int{1, 2}, false},
		{"one less", []int{1, 2}, []int{1}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			answers := []answer{sampleSize(1, `{}`), seqNoSort("", 5), seqNoSort("", 6)}
			if !c.valid { // the first page after the move reads everything again
				answers = append(answers[:2:2], sampleSize(1, `{}`), seqNoSort("", 5), seqNoSort("", 6))
			}
			x, s := keyed(t, cursorKey, answers...)
			s.settings = settingsOf(c.before...)
			next := h
			next.After = places(t, x, "a", h)[0]
			s.settings = settingsOf(c.then...)
			if !c.valid {
				_, err := x.Search(t.Context(), "a", []index.SearchRequest{{Hits: &index.HitsRequest{Size: 3, Sort: h.Sort, After: next.After}}})
				wantError(t, err, core.CodeInvalid, invalidCursor)
				wantHint(t, err, "start again from the first page, without a cursor")
				next.After = places(t, x, "a", h)[0]
			}
			places(t, x, "a", next)
		})
	}
	t.Run("where the id field proved wrong", func(t *testing.T) {
		x, s := keyed(t, cursorKey, sampleSize(1, `{"uid":"1"}`), answer{200, keywordID}, found(`"hits":{"hits":[{"_id":"3","sort":["x"]}]}`), seqNoSort("", 5), seqNoSort("", 6))
		next := h
		next.After = places(t, x, "a", h)[0]
		places(t, x, "a", next)
		s.settings = settingsOf(2)
		_, err := x.Search(t.Context(), "a", []index.SearchRequest{{Hits: &index.HitsRequest{Size: 3, Sort: h.Sort, After: next.After}}})
		wantError(t, err, core.CodeInvalid, invalidCursor)
	})
}

// pairs is a cluster of documents of which two each have the same number, and whose answers have room for a few.
type pairs struct{ documents, room int }

// RoundTrip answers searches in the order of the numbers.
func (p pairs) RoundTrip(r *http.Request) (*http.Response, error) {
	var asked struct {
		Size, From int
		After      []int           `json:"search_after"`
		Query      json.RawMessage `json:"query"`
		Sort       json.RawMessage `json:"sort"`
	}
	if r.Body != nil && r.ContentLength != 0 {
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			return nil, err
		}
		if err := r.Body.Close(); err != nil {
			return nil, err
		}
	}
	answer := io.Reader(strings.NewReader(sampleSize(2, `{}`).body))
	if strings.HasSuffix(r.URL.Path, "/_pit") {
		answer = strings.NewReader(point)
	} else if asked.Sort == nil {
		answer = strings.NewReader(settingsOf(1))
	} else if string(asked.Sort) != `["_doc"]` {
		var hits []string
		for i := range p.documents {
			seen := strings.Contains(string(asked.Query), fmt.Sprintf(`"values":["%d"]`, i))
			if !seen && (asked.After == nil || i/2 > asked.After[0]) {
				hits = append(hits, fmt.Sprintf(`{"_index":"a-1","_id":"%d","sort":[%d]}`, i, i/2))
			}
		}
		hits = hits[asked.From:]
		if hits = hits[:min(len(hits), asked.Size)]; len(hits) > p.room {
			answer = iotest.ErrReader(elastic.ErrOverLimit())
		} else {
			answer = strings.NewReader(found(`"hits":{"hits":[` + strings.Join(hits, ",") + `]}`).body)
		}
	}
	header := http.Header{"X-Elastic-Product": {"Elasticsearch"}, "Content-Type": {"application/json"}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(answer), Request: r}, nil
}

// TestCursorsOfParts: a page that is too long for one answer is the same in several, also after a cursor.
func TestCursorsOfParts(t *testing.T) {
	x := open(t, "http://node")
	if err := x.SendBy(pairs{documents: 40, room: 3}); err != nil {
		t.Fatal(err)
	}
	h := index.HitsRequest{Size: 11, Sort: []index.Sort{{Field: field("_id", "keyword")}}, Source: index.Source{None: true}}
	for first := 0; first < 33; first += h.Size {
		got, err := x.Search(t.Context(), "a", []index.SearchRequest{{Hits: &h}})
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for i := range h.Size {
			want = append(want, fmt.Sprint(first+i))
		}
		if ids := idsOf(got[0].Hits); !slices.Equal(ids, want) {
			t.Fatalf("got %q, want %q", ids, want)
		}
		h.After = got[0].Hits[h.Size-1].Sort
	}
}

// TestStreamByIDs: where no field holds the ids, a stream is in the order of storage, so its cursors carry no position either.
func TestStreamByIDs(t *testing.T) {
	x, s := play(t, answer{200, point}, sampleSize(3, `{}`), answer{200, settingsOf(1)}, answer{200, `{"pit_id":"P","timed_out":false,"_shards":{"failed":0},"hits":{"total":{"value":0},"hits":[]}}`}, answer{200, `{}`})
	by := []index.Sort{{Field: field("k", "keyword")}, {Field: field("_id", "keyword")}}
	if err := x.Stream(t.Context(), "a", index.StreamRequest{Sort: by}, func([]index.Hit) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.asked[3], `},{"_shard_doc":{"order":"asc"}},"_shard_doc"]`) {
		t.Errorf("asked %s", s.asked[3])
	}
}

// TestCursorKey: a key of another length is refused.
func TestCursorKey(t *testing.T) {
	_, err := elastic.New(elastic.Config{Connection: elastic.Connection{URLs: []string{"http://127.0.0.1:1"}}, CursorKey: []byte("short")})
	wantError(t, err, core.CodeInvalid, "the key of the index's cursors must have 32 bytes")
}
