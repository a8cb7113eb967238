package elastic_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic"
)

// noPlace is the cluster's word for that a document has no value of a long.
const noPlace = "9223372036854775807"

// narrow is a cluster of some documents, of which an answer has room for a few, or values, but for any number of ids. Each has its number, and
// no value beside it.
type narrow struct {
	documents, room int
	// padding makes documents larger. Each holds its id, but the order by that field is of something else when lying is set.
	padding int
	lying   bool
	// asked are the searches, each alone. sizes are how many documents each search asked for, those of one request together.
	asked, sizes []string
	// paths are the methods and paths of all requests but those for the engine.
	paths []string
}

// RoundTrip answers searches in the order of the documents' numbers.
func (n *narrow) RoundTrip(r *http.Request) (*http.Response, error) {
	var asked []byte
	if r.Body != nil {
		var err error
		if asked, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		if err := r.Body.Close(); err != nil {
			return nil, err
		}
	}
	if r.URL.Path != "/" && !strings.HasPrefix(r.URL.Path, "/_nodes") {
		n.paths = append(n.paths, r.Method+" "+r.URL.Path)
	}
	answer := io.Reader(strings.NewReader(point)) // also where one is given back
	switch {
	case strings.HasSuffix(r.URL.Path, "_mapping"):
		answer = strings.NewReader(keywordID)
	case strings.HasSuffix(r.URL.Path, "_settings"):
		answer = strings.NewReader(settingsOf(1))
	}
	if strings.HasSuffix(r.URL.Path, "search") {
		lines := strings.Split(strings.TrimSuffix(string(asked), "\n"), "\n")
		body, given, sizes := "", 0, []string{}
		for i, line := range lines {
			if len(lines) > 1 && i%2 == 0 {
				continue // the head of a search among others
			}
			one, size, err := n.answer(line, &given)
			if err != nil {
				return nil, err
			}
			body, sizes = body+","+one, append(sizes, strconv.Itoa(size))
		}
		n.sizes = append(n.sizes, strings.Join(sizes, "+"))
		if body = body[1:]; len(lines) > 1 {
			body = `{"responses":[` + body + `]}`
		}
		if answer = strings.NewReader(body); given > n.room {
			answer = iotest.ErrReader(elastic.ErrOverLimit())
		}
	}
	header := http.Header{"X-Elastic-Product": {"Elasticsearch"}, "Content-Type": {"application/json"}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(answer), Request: r}, nil
}

// answer responds to one search for a number of documents. given is how many documents exist.
func (n *narrow) answer(asked string, given *int) (body string, size int, err error) {
	var s struct {
		Size, From int
		After      []json.Number `json:"search_after"`
		Source     any           `json:"_source"`
		Aggs       map[string]struct{ Terms, Composite struct{ Size int } }
	}
	if err := json.Unmarshal([]byte(asked), &s); err != nil {
		return "", 0, err
	}
	if s.After != nil {
		if after, err := s.After[0].Int64(); err != nil || len(s.After) != 2 || s.After[1] != noPlace {
			return "", 0, fmt.Errorf("asked after %s: %w", s.After, err)
		} else {
			s.From = int(after) + 1
		}
	}
	n.asked = append(n.asked, asked)
	identity := ""
	if n.lying && strings.Contains(asked, `{"uid":{`) {
		identity = `"other",`
	}
	var hits []string
	padding := strings.Repeat("x", n.padding)
	for i := s.From; i < min(s.From+s.Size, n.documents); i++ {
		source := fmt.Sprintf(`"_source":{"uid":"%d","pad":"%s"},`, i, padding)
		if s.Source == false {
			source = ""
		} else {
			*given++
		}
		hits = append(hits, fmt.Sprintf(`{"_id":"%d",%s"sort":[%s%d,%s]}`, i, source, identity, i, noPlace))
	}
	values := s.Aggs["a0t"].Terms.Size
	*given += values + s.Aggs["a0p"].Composite.Size
	return found(fmt.Sprintf(`"pit_id":"P","hits":{"total":{"value":%d},"hits":[%s]},"aggregations":{"a0t":{"buckets":[%s]}}`, n.documents, strings.Join(hits, ","),
		strings.TrimSuffix(strings.Repeat(`{"key":"x","doc_count":1},`, values), ","))).body, s.Size, nil
}

// TestPartsOfAnswers: what is too long for one answer is asked for in several, and is what one would have been.
func TestPartsOfAnswers(t *testing.T) {
	by := []index.Sort{{Field: field("n", "long")}, {Field: field("m", "long")}}
	page := func(from, size int, after ...string) index.SearchRequest {
		h := &index.HitsRequest{Size: size, From: from, Sort: by}
		for _, value := range after {
			h.After = append(h.After, json.RawMessage(value))
		}
		return index.SearchRequest{Hits: h, Total: true}
	}
	numbers := func(from, to int) (ids []string) {
		for i := from; i < to; i++ {
			ids = append(ids, strconv.Itoa(i))
		}
		return ids
	}
	for _, c := range []struct {
		name  string
		room  int
		reqs  []index.SearchRequest
		want  [][]string
		sizes []string
	}{
		{"nothing is too long", 10, []index.SearchRequest{page(0, 10)}, [][]string{numbers(0, 10)}, []string{"10"}},
		{"a page", 5, []index.SearchRequest{page(2, 9)}, [][]string{numbers(2, 11)}, []string{"9", "4", "5"}},
		{"halves of halves", 2, []index.SearchRequest{page(0, 7)}, [][]string{numbers(0, 7)}, []string{"7", "3", "1", "2", "4", "2", "2"}},
		{"a page after another", 3, []index.SearchRequest{page(0, 6, "4", "null")}, [][]string{numbers(5, 11)}, []string{"6", "3", "3"}},
		{"the last page", 3, []index.SearchRequest{page(16, 100)}, [][]string{numbers(16, 20)}, []string{"100", "50", "25", "12", "6", "3", "6"}},
		{
			"several searches", 6,
			[]index.SearchRequest{page(0, 5), page(5, 5), page(10, 5)},
			[][]string{numbers(0, 5), numbers(5, 10), numbers(10, 15)},
			[]string{"5+5+5", "5", "5+5", "5", "5"},
		},
		{
			"several searches, of which one is too long by itself", 6,
			[]index.SearchRequest{page(0, 2), page(5, 8)},
			[][]string{numbers(0, 2), numbers(5, 13)},
			[]string{"2+8", "2", "8", "4", "4"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := &narrow{documents: 20, room: c.room}
			x := narrowed(t, n)
			got, err := x.Search(t.Context(), "a", c.reqs)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range c.want {
				if diff := cmp.Diff(want, idsOf(got[i].Hits)); diff != "" || got[i].Total != 20 {
					t.Errorf("search %d of %d documents: %s", i, got[i].Total, diff)
				}
			}
			if !slices.Equal(n.sizes, c.sizes) {
				t.Errorf("asked for %q, want %q", n.sizes, c.sizes)
			}
		})
	}
}

// TestLargeDocumentsAreAskedForInParts: documents whose mean size is known are requested in parts of at most 4 MiB; all of them, and a part,
// are reserved. Of an unknown size, what a page may have at most is reserved when a response is larger than expected.
func TestLargeDocumentsAreAskedForInParts(t *testing.T) {
	const megabyte = 1 << 20
	n := &narrow{documents: 40, room: 100, padding: 2*megabyte - 1000}
	x := narrowed(t, n)
	var reserved []int64
	request := index.SearchRequest{
		Hits:    &index.HitsRequest{Size: 30, Sort: []index.Sort{{Field: field("n", "long")}, {Field: field("m", "long")}}},
		Reserve: func(_ context.Context, bytes int64) error { reserved = append(reserved, bytes/megabyte); return nil },
	}
	for i, want := range [][]int64{{8, 32, 72}, {72}} {
		n.sizes, reserved = nil, nil
		got, err := x.Search(t.Context(), "a", []index.SearchRequest{request})
		if err != nil || len(got[0].Hits) != 30 || got[0].Hits[29].ID != "29" {
			t.Fatalf("%d documents, %v", len(got[0].Hits), err)
		}
		if !slices.Equal(reserved, want) {
			t.Errorf("search %d: %d MiB are reserved, want %d", i, reserved, want)
		}
	}
	if want := slices.Repeat([]string{"2"}, 15); !slices.Equal(n.sizes, want) {
		t.Errorf("asked for %q, want %q", n.sizes, want)
	}
}

// TestPartsReserveOnce: while a page is read in parts, nothing is reserved again: it would wait for others while it holds its documents.
func TestPartsReserveOnce(t *testing.T) {
	const megabyte = 1 << 20
	n := &narrow{documents: 100, room: 1000, padding: 1_900_000} // the last document of a part exceeds the limit
	x := narrowed(t, n)
	reserved := 0
	read := 0
	request := index.SearchRequest{
		Hits: &index.HitsRequest{
			Size: 100, Sort: []index.Sort{{Field: field("n", "long")}, {Field: field("m", "long")}}, Source: index.Source{Paths: []string{"pad"}},
			Read: func(_ string, data []byte, at int) ([]byte, int) {
				if read > 64*megabyte {
					return []byte{}, at
				}
				end := at + bytes.IndexByte(data[at:], '}') + 1
				read += end - at
				return data[at:end], end
			},
		},
		Reserve: func(context.Context, int64) error { reserved++; return nil },
	}
	if _, err := x.Search(t.Context(), "a", []index.SearchRequest{{Hits: &index.HitsRequest{Size: 1}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Search(t.Context(), "a", []index.SearchRequest{request}); err != nil || read < 64*megabyte || reserved != 1 {
		t.Errorf("%v; %d bytes were read, %d times memory was reserved", err, read, reserved)
	}
}

// TestPartsEndWithWhatIsNeeded: after a document that is not needed, no further part is requested.
func TestPartsEndWithWhatIsNeeded(t *testing.T) {
	n := &narrow{documents: 40, room: 4}
	x := narrowed(t, n)
	read := 0
	request := index.SearchRequest{Hits: &index.HitsRequest{
		Size: 30, Sort: []index.Sort{{Field: field("n", "long")}, {Field: field("m", "long")}},
		Read: func(_ string, data []byte, at int) ([]byte, int) {
			if read++; read > 5 {
				return []byte{}, at
			}
			return []byte("{}"), at + bytes.IndexByte(data[at:], '}') + 1
		},
	}}
	got, err := x.Search(t.Context(), "a", []index.SearchRequest{request})
	if err != nil || len(got[0].Hits) > 8 {
		t.Errorf("%d documents, %v", len(got[0].Hits), err)
	}
	if read > 8 {
		t.Errorf("%d documents were read, in parts of %q", read, n.sizes)
	}
}

// TestPartsAreOfOnePointInTime: a document that is written between two parts of a page is in one of them.
func TestPartsAreOfOnePointInTime(t *testing.T) {
	n := &narrow{documents: 20, room: 4}
	x := narrowed(t, n)
	for _, after := range [][]json.RawMessage{nil, {json.RawMessage("3"), json.RawMessage("null")}} {
		n.asked, n.paths = nil, nil
		h := &index.HitsRequest{Size: 10, Sort: []index.Sort{{Field: field("n", "long")}, {Field: field("m", "long")}}, After: after}
		if _, err := x.Search(t.Context(), "a", []index.SearchRequest{{Hits: h}}); err != nil {
			t.Fatal(err)
		}
		for _, asked := range n.asked[1:] {
			if !strings.HasSuffix(asked, `,"pit":{"id":"P","keep_alive":"5m"}}`) {
				t.Errorf("asked %s", asked)
			}
		}
		if want := []string{"POST /a/_search", "POST /a/_pit", "POST /_search", "DELETE /_pit"}; !slices.Equal(slices.Compact(slices.Clone(n.paths)), want) {
			t.Errorf("asked %q, want %q", n.paths, want)
		}
	}
}

// TestPartsOfStreams: a page that is too long is asked for again, shorter.
func TestPartsOfStreams(t *testing.T) {
	n := &narrow{documents: 70, room: 30}
	x := narrowed(t, n)
	var got []string
	err := x.Stream(t.Context(), "a", index.StreamRequest{Sort: []index.Sort{{Field: field("n", "long")}, {Field: field("m", "long")}}}, func(hits []index.Hit) error {
		got = append(got, idsOf(hits)...)
		if place := hits[0].Sort; string(place[0]) != hits[0].ID || string(place[1]) != "null" {
			t.Errorf("the place of %s is %s", hits[0].ID, place)
		}
		return nil
	})
	if err != nil || len(got) != 70 || !slices.IsSortedFunc(got, func(a, b string) int { return len(a) - len(b) }) {
		t.Errorf("%d documents, %q, %v", len(got), got, err)
	}
	if want := []string{"100", "50", "25"}; !slices.Equal(n.sizes[:3], want) {
		t.Errorf("asked for %q, want %q first", n.sizes, want)
	}
}

// TestOneDocumentIsTooLong has no remedy but to request less of it, as the hint says.
func TestOneDocumentIsTooLong(t *testing.T) {
	const message = "a part of the result is larger than the index can return at once"
	n := &narrow{documents: 20}
	x := narrowed(t, n)
	_, err := x.Search(t.Context(), "a", []index.SearchRequest{{Hits: &index.HitsRequest{Size: 5}}})
	wantError(t, err, core.CodeInvalid, message)
	wantHint(t, err, "request only ids, or fewer facet values")
	got, only := x.Search(t.Context(), "a", []index.SearchRequest{{Hits: &index.HitsRequest{Size: 5, Source: index.Source{None: true}}}})
	if only != nil || len(got[0].Hits) != 5 {
		t.Errorf("only ids: %v", only)
	}
	n.room = 10
	for values, fits := range map[int]bool{11: false, 10: true} {
		_, err := x.Search(t.Context(), "a", []index.SearchRequest{{Facets: []index.Facet{{Field: field("k", "keyword"), Buckets: &index.Buckets{Max: values}}}}})
		if fits != (err == nil) || !fits && !errors.Is(err, elastic.ErrOverLimit()) {
			t.Errorf("%d values: %v", values, err)
		}
	}
	n.room = 0
	if !errors.Is(err, elastic.ErrOverLimit()) {
		t.Errorf("got %v", err)
	}
	err = x.Stream(t.Context(), "a", index.StreamRequest{}, func([]index.Hit) error { return nil })
	wantError(t, err, core.CodeInvalid, message)
}

// TestPartsAreBounded: what is asked for in parts is no more in all than one answer may be.
func TestPartsAreBounded(t *testing.T) {
	request := []index.SearchRequest{{Hits: &index.HitsRequest{Size: 16, Sort: []index.Sort{{Field: field("n", "long")}}}}}
	for room, ok := range map[int64]bool{4000: false, 17_000: true} {
		n := &narrow{documents: 20, room: 4, padding: 1000}
		x := narrowed(t, n)
		x.KeepAtMost(room)
		got, err := x.Search(t.Context(), "a", request)
		if ok {
			if err != nil || len(got[0].Hits) != 16 {
				t.Errorf("of %d bytes: %v", room, err)
			}
			continue
		}
		wantError(t, err, core.CodeInvalid, "the documents of the result are larger than 4000 bytes")
		wantHint(t, err, "request fewer documents, or fewer of their fields")
		if len(n.sizes) > 4 {
			t.Errorf("asked for %q, though there was no room any more", n.sizes)
		}
		fewer, only := *request[0].Hits, *request[0].Hits
		fewer.Size, only.Source = 3, index.Source{None: true}
		for size, hits := range map[int]*index.HitsRequest{3: &fewer, 16: &only} {
			if got, err := x.Search(t.Context(), "a", []index.SearchRequest{{Hits: hits}}); err != nil || len(got[0].Hits) != size {
				t.Errorf("%d documents: %v", size, err)
			}
		}
	}
}

// TestPartsAreBelieved: what is found out about the documents of an answer in parts is found out as of one.
func TestPartsAreBelieved(t *testing.T) {
	t.Run("that the order is not that of the ids", func(t *testing.T) {
		n := &narrow{documents: 30, room: 7, lying: true}
		x := narrowed(t, n)
		request := []index.SearchRequest{{Hits: &index.HitsRequest{Size: 20, Sort: []index.Sort{{Field: field("_id", "keyword")}}}}}
		if _, err := x.Search(t.Context(), "a", request); err != nil {
			t.Fatal(err)
		}
		if last := n.asked[len(n.asked)-1]; !strings.Contains(last, `"sort":[{"_seq_no":`) {
			t.Errorf("asked %s last", last)
		}
	})
	t.Run("how large they are", func(t *testing.T) {
		n := &narrow{documents: 6, room: 4, padding: 20_000}
		x := narrowed(t, n)
		for _, source := range []index.Source{{}, {Paths: []string{"n"}}} {
			if _, err := x.Search(t.Context(), "a", []index.SearchRequest{{Hits: &index.HitsRequest{Size: 6, Source: source}}}); err != nil {
				t.Fatal(err)
			}
		}
		if last := n.asked[len(n.asked)-1]; !strings.Contains(last, `"_source":{"includes":["n"]}`) {
			t.Errorf("asked %s last", last)
		}
	})
}

func narrowed(t *testing.T, n *narrow) *elastic.Index {
	t.Helper()
	x := open(t, "http://node")
	if err := x.SendBy(n); err != nil {
		t.Fatal(err)
	}
	return x
}

func idsOf(hits []index.Hit) []string {
	ids := make([]string, len(hits))
	for i, hit := range hits {
		ids[i] = hit.ID
	}
	return ids
}
