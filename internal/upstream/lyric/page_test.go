package lyric_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
	"tutti/internal/tools/testkit/dataset"
	"tutti/internal/upstream"
	"tutti/internal/upstream/lyric"
)

func TestPages(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]testkit.LyricConfig{
		"plain": {}, "gzip": {Gzip: true}, "pagination last": {PaginationLast: true}, "base path": {BasePath: "/a/lyric"},
		"central entity": {CentralEntity: "donor"}, "alias": {CategoryID: 7, Alias: "clinical"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, cfg)
			want := dataset.GenerateRecords(3, "PANC-CA", 250)
			server.PutAll(want...)
			server.PutAll(dataset.GenerateRecords(3, "LIVR-JP", 5)...)
			c := client(t, server, lyric.Config{ValidOnly: true, CategoryID: cfg.Alias})
			var got []core.Record
			for offset := 0; ; offset += 100 {
				records, info, err := read(t, c, "PANC-CA", offset, 100)
				if err != nil {
					t.Fatal(err)
				}
				if info.Total != 250 || info.Rows != len(records) {
					t.Fatalf("info %+v with %d records", info, len(records))
				}
				got = append(got, records...)
				if offset+info.Rows >= info.Total {
					break
				}
			}
			if len(got) != len(want) {
				t.Fatalf("%d records", len(got))
			}
			for i, r := range got {
				want := core.Record{ID: want[i].SystemID, Organization: "PANC-CA", Indexable: true, Body: want[i].Body, Plain: true}
				if d := cmp.Diff(want, r, cmp.Comparer(bytes.Equal), cmpopts.IgnoreFields(core.Record{}, "Shape")); d != "" {
					t.Fatalf("record %d (-want +got):\n%s", i, d)
				}
				if r.Shape == 0 {
					t.Fatalf("record %d has no shape", i)
				}
			}
			calls := []testkit.LyricPageCall{
				{Organization: "PANC-CA", View: "compound", Page: 1, PageSize: 100},
				{Organization: "PANC-CA", View: "compound", Page: 2, PageSize: 100},
				{Organization: "PANC-CA", View: "compound", Page: 3, PageSize: 100},
			}
			if d := cmp.Diff(calls, server.PageCalls()); d != "" {
				t.Errorf("calls (-want +got):\n%s", d)
			}
		})
	}
}

func TestPageValidity(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.LyricConfig{})
	put(t, server, "O1", "a", true)
	put(t, server, "O1", "b", false)
	for validOnly, want := range map[bool][]bool{true: {true, false}, false: {true, true}} {
		records, info, err := read(t, client(t, server, lyric.Config{ValidOnly: validOnly}), "O1", 0, 10)
		if err != nil || len(records) != 2 || info != (core.PageInfo{Rows: 2, Total: 2}) {
			t.Fatalf("%v, %+v, %v", records, info, err)
		}
		if d := cmp.Diff(want, []bool{records[0].Indexable, records[1].Indexable}); d != "" {
			t.Errorf("valid only %v (-want +got):\n%s", validOnly, d)
		}
		if string(records[1].Body) != envelope("b", "O1", false) || records[0].HasRepositories {
			t.Errorf("%+v", records)
		}
	}
}

// TestEntity: records of another entity than the configured one are not indexable, in a page or alone.
func TestEntity(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.LyricConfig{})
	put(t, server, "O1", "a", true)
	entity := "donor"
	if record, ok := server.Record("a"); ok {
		entity = record.EntityName
	}
	for asked, want := range map[string]bool{"": true, entity: true, entity + "s": false} {
		c := client(t, server, lyric.Config{Entity: asked})
		records, _, err := read(t, c, "O1", 0, 10)
		if err != nil || len(records) != 1 || records[0].Indexable != want {
			t.Errorf("entity %q: %+v, %v, want indexable %v", asked, records, err, want)
		}
		if record, err := c.Record(t.Context(), "O1", "a"); err != nil || record.Indexable != want {
			t.Errorf("entity %q alone: %+v, %v, want indexable %v", asked, record, err, want)
		}
	}
}

func TestPageOfNothing(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.LyricConfig{})
	put(t, server, "O1", "a", true)
	server.AddOrganizations("empty")
	c := client(t, server, lyric.Config{})
	for name, tt := range map[string]struct {
		organization string
		offset       int
	}{"behind the end": {"O1", 10}, "no records": {"empty", 0}, "no organization": {"nobody", 0}} {
		records, info, err := read(t, c, tt.organization, tt.offset, 10)
		if err != nil || len(records) != 0 || info != (core.PageInfo{}) {
			t.Errorf("%s: %v, %+v, %v", name, records, info, err)
		}
	}
	// The list of the whole category uses another case, and other releases may too.
	server.Fail(testkit.Fault{Status: 404, Body: `{"error":"Not Found","message":"No Submitted Data found"}`})
	if _, info, err := read(t, c, "O1", 0, 10); err != nil || info != (core.PageInfo{}) {
		t.Errorf("other case: %+v, %v", info, err)
	}
	server.ClearFaults()
	server.Fail(testkit.Fault{Status: 200, Body: `{"pagination":{"currentPage":1,"pageSize":10,"totalRecords":0},"records":[]}`})
	if _, info, err := read(t, c, "O1", 0, 10); err != nil || info != (core.PageInfo{}) {
		t.Errorf("empty page: %+v, %v", info, err)
	}
}

// TestPageOfAListThatShifts: a record removed between two pages shifts the next ones, as on the real server; the total shows it.
func TestPageOfAListThatShifts(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.LyricConfig{BeforePage: func(s *testkit.LyricServer, n int, _ testkit.LyricPageCall) {
		if n == 1 {
			s.Remove("a")
		}
	}})
	for _, id := range []string{"a", "b", "c", "d"} {
		put(t, server, "O1", id, true)
	}
	c := client(t, server, lyric.Config{})
	first, firstInfo, err := read(t, c, "O1", 0, 2)
	if err != nil || len(first) != 2 || first[1].ID != "b" || firstInfo.Total != 4 {
		t.Fatalf("%v, %+v, %v", first, firstInfo, err)
	}
	second, secondInfo, err := read(t, c, "O1", 2, 2)
	if err != nil || len(second) != 1 || second[0].ID != "d" || secondInfo != (core.PageInfo{Rows: 1, Total: 3}) {
		t.Errorf("%v, %+v, %v", second, secondInfo, err)
	}
}

func TestPageErrorOfEach(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.LyricConfig{})
	server.PutAll(dataset.GenerateRecords(1, "O1", 20)...)
	stop := errors.New("enough")
	calls := 0
	info, err := client(t, server, lyric.Config{}).Page(t.Context(), "O1", 0, 20, func(core.Record) error {
		calls++
		return stop
	})
	if err != stop || calls != 1 || info.Rows != 1 { //nolint:errorlint // identity is part of the contract
		t.Errorf("%v after %d calls, %+v", err, calls, info)
	}
}

func TestPageInvalidRequest(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.LyricConfig{})
	c := client(t, server, lyric.Config{})
	const bounds = "the offset of a page must be at least 0 and its limit at least 1"
	const multiple = "the offset of a tabular repository's page must be a multiple of its limit"
	const segment = "an id must not be empty or a relative path segment"
	for _, tt := range []struct {
		organization  string
		offset, limit int
		message       string
	}{
		{"", 0, 1, segment},
		{"..", 0, 1, segment},
		{".", 0, 1, segment},
		{"O", -1, 1, bounds},
		{"O", 0, 0, bounds},
		{"O", 99, 100, multiple},
		{"O", 101, 100, multiple},
	} {
		_, _, err := read(t, c, tt.organization, tt.offset, tt.limit)
		wantError(t, fmt.Sprintf("%+v", tt), err, core.CodeInvalid, tt.message)
	}
	if n := len(server.RawPaths()); n != 0 {
		t.Errorf("%d calls were made", n)
	}
}

func page(pagination string, rows ...string) string {
	return `{"pagination":` + pagination + `,"records":[` + strings.Join(rows, ",") + `]}`
}

// TestPageMustBeThePage asks for rows [10, 20) each time.
func TestPageMustBeThePage(t *testing.T) {
	t.Parallel()
	const (
		good  = `{"currentPage":2,"pageSize":10,"totalPages":2,"totalRecords":11}`
		shape = "the upstream's page has an unexpected format"
		row   = "the upstream's record has an unexpected format"
		cut   = "the upstream's page was cut short"
	)
	a := envelope("a", "O1", true)
	tests := []struct {
		name, body string
		code       core.Code
		message    string
	}{
		{"html", `<html>maintenance</html>`, core.CodeUnavailable, "the upstream's answer is not JSON"},
		{"empty", ``, core.CodeUnavailable, "the upstream's answer was cut short"},
		{"an array", `[]`, core.CodeUnavailable, "the upstream's answer has an unexpected format"},
		{"no records", `{"pagination":` + good + `}`, core.CodeUnavailable, "the upstream's answer is not a page"},
		{"error document", `{"error":"Not Found","message":"No Submitted data found"}`, core.CodeUnavailable, "the upstream's answer is not a page"},
		{"no pagination", `{"records":[` + a + `]}`, core.CodeUnavailable, shape},
		{"pagination no object", page(`[1]`, a), core.CodeUnavailable, shape},
		{"pagination null", page(`null`, a), core.CodeUnavailable, shape},
		{"no page", page(`{"pageSize":10,"totalRecords":11}`, a), core.CodeUnavailable, shape},
		{"no size", page(`{"currentPage":2,"totalRecords":11}`, a), core.CodeUnavailable, shape},
		{"no total", page(`{"currentPage":2,"pageSize":10}`, a), core.CodeUnavailable, shape},
		{"total negative", page(`{"currentPage":2,"pageSize":10,"totalRecords":-1}`, a), core.CodeUnavailable, shape},
		{"total no number", page(`{"currentPage":2,"pageSize":10,"totalRecords":"11"}`, a), core.CodeUnavailable, shape},
		{"another page", page(`{"currentPage":1,"pageSize":10,"totalRecords":11}`, a), core.CodeUpstream, "the upstream returned page 1 instead of page 2"},
		{"size capped", page(`{"currentPage":2,"pageSize":5,"totalRecords":11}`, a), core.CodeUpstream, "the upstream returned a page of 5 records instead of 10"},
		{"size raised", page(`{"currentPage":2,"pageSize":20,"totalRecords":11}`, a), core.CodeUpstream, "the upstream returned a page of 20 records instead of 10"},
		{"too many rows", page(good, strings.Split(strings.Repeat(a+"\n", 10)+a, "\n")...), core.CodeUpstream, "the upstream's page contains 11 records instead of at most 10"},
		{"rows lost", page(`{"currentPage":2,"pageSize":10,"totalRecords":12}`, a), core.CodeUnavailable, cut},
		{"all rows lost", page(good), core.CodeUnavailable, cut},
		{"isValid missing", page(good, `{"data":{"isValid":true},"organization":"O1","systemId":"a"}`), core.CodeUnavailable, row},
		{"isValid a string", page(good, `{"isValid":"true","organization":"O1","systemId":"a"}`), core.CodeUnavailable, row},
		{"isValid null", page(good, `{"isValid":null,"organization":"O1","systemId":"a"}`), core.CodeUnavailable, row},
		{"isValid a number", page(good, `{"isValid":1,"organization":"O1","systemId":"a"}`), core.CodeUnavailable, row},
		{"a row that is none", page(good, `7`), core.CodeUnavailable, "the upstream's page lists a value that is not a record"},
		{"more behind", page(good, a) + `x`, core.CodeUnavailable, "the upstream's answer continues after its end"},
	}
	server := serve(t, testkit.LyricConfig{})
	c := client(t, server, lyric.Config{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server.ClearFaults()
			server.Fail(testkit.Fault{Status: http.StatusOK, ContentType: "application/json", Body: tt.body})
			_, info, err := read(t, c, "O1", 10, 10)
			wantError(t, "page", err, tt.code, tt.message)
			if info.Total != 0 {
				t.Errorf("info %+v with an error", info)
			}
		})
	}
	server.ClearFaults()
	server.Fail(testkit.Fault{Status: http.StatusOK, Body: page(good, a)})
	if _, info, err := read(t, c, "O1", 10, 10); err != nil || info != (core.PageInfo{Rows: 1, Total: 11}) {
		t.Errorf("the good page: %+v, %v", info, err)
	}
	// One record was removed after the rows were read and before they were counted.
	server.ClearFaults()
	server.Fail(testkit.Fault{Status: http.StatusOK, Body: page(`{"currentPage":2,"pageSize":10,"totalRecords":10}`, a)})
	if _, info, err := read(t, c, "O1", 10, 10); err != nil || info != (core.PageInfo{Rows: 1, Total: 10}) {
		t.Errorf("a total that shrank: %+v, %v", info, err)
	}
}

// TestPageSizeThatIsCapped: skipping the rows between two short pages would lose records without a word.
func TestPageSizeThatIsCapped(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.LyricConfig{MaxPageSize: 10})
	server.PutAll(dataset.GenerateRecords(1, "O1", 30)...)
	c := client(t, server, lyric.Config{})
	_, _, err := read(t, c, "O1", 0, 20)
	wantError(t, "capped", err, core.CodeUpstream, "the upstream returned a page of 10 records instead of 20")
	if hint := core.HintOf(err); hint != "set the repository's pageSize to what its server and the gateways in front of it allow" {
		t.Errorf("hint %q", hint)
	}
	if _, info, err := read(t, c, "O1", 20, 10); err != nil || info != (core.PageInfo{Rows: 10, Total: 30}) {
		t.Errorf("at the cap: %+v, %v", info, err)
	}
}

func TestPageOfRecordsOfManyShapes(t *testing.T) {
	t.Parallel()
	rows := []string{
		`{ "isValid" : true ,
 "systemId":"\u0061", "organization":"O\/1", "data":{"a":[{"isValid":7}]}}`,
		`{"isV\u0061lid":false,"repositories":[],"systemId":"b","organization":"O2"}`,
		`{"isValid":true}`,
	}
	server := serve(t, testkit.LyricConfig{})
	server.Fail(testkit.Fault{Status: http.StatusOK, Body: page(`{"currentPage":1,"pageSize":3,"totalRecords":3}`, rows...)})
	got, _, err := read(t, client(t, server, lyric.Config{ValidOnly: true}), "O1", 0, 3)
	if err != nil {
		t.Fatal(err)
	}
	want := []core.Record{
		{ID: "a", Organization: "O/1", Indexable: true, Plain: true, Body: []byte(strings.ReplaceAll(rows[0], "\n", " "))},
		{ID: "b", Organization: "O2", Plain: true, HasRepositories: true, Body: []byte(rows[1])},
		{Indexable: true, Plain: true, Body: []byte(rows[2])},
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(core.Record{}, "Shape")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestMemoryDoesNotGrowWithThePage streams a page of 64 MiB.
func TestMemoryDoesNotGrowWithThePage(t *testing.T) {
	row := strings.Replace(envelope("a", "O1", true), `"n"`, `"`+strings.Repeat("n", 4000)+`"`, 1)
	rows := 64 << 20 / len(row)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"pagination":{"currentPage":1,"pageSize":%d,"totalRecords":%d},"records":[%s`, rows, rows, row)
		for range rows - 1 {
			fmt.Fprint(w, ",", row)
		}
		fmt.Fprint(w, "]}")
	}))
	defer server.Close()
	c, err := lyric.New(lyric.Config{Config: upstream.Config{URL: server.URL}, CategoryID: "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n, most := 0, uint64(0)
	info, err := c.Page(t.Context(), "O1", 0, rows, func(core.Record) error {
		if n++; n%2000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
		}
		return nil
	})
	if err != nil || info != (core.PageInfo{Rows: rows, Total: rows}) {
		t.Fatalf("%+v, %v", info, err)
	}
	if grown := int64(most) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
}

// FuzzPage: no page is taken that encoding/json reads in another way, and none whose records do not say whether they
// are valid.
func FuzzPage(f *testing.F) {
	f.Add([]byte(page(`{"currentPage":1,"pageSize":10,"totalRecords":1}`, envelope("a", "O1", true))))
	f.Add([]byte(`{"records":[{"isValid":false}],"pagination":{"currentPage":1,"pageSize":10,"totalRecords":3}}`))
	f.Add([]byte(page(`{"currentPage":1,"pageSize":10,"totalRecords":0}`)))
	f.Add([]byte(`{"error":"Not Found","message":"No Submitted data found"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := lyric.New(lyric.Config{Config: upstream.Config{URL: "http://h", Transport: always(http.StatusOK, body)}, CategoryID: "1", ValidOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		got, info, err := read(t, c, "O1", 0, 10)
		if err != nil {
			return
		}
		checkPage(t, body, got, info)
	})
}

// FuzzNotFound: a 404 is an empty page or an absent record in Lyric's own words alone.
func FuzzNotFound(f *testing.F) {
	for _, message := range []string{"No Submitted data found", "Category '1' not found", "Invalid Category ID", "Invalid Category ID '1' for system ID 'a'"} {
		f.Add(fmt.Appendf(nil, `{"error":"Not Found","message":%q}`, message))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := lyric.New(lyric.Config{Config: upstream.Config{URL: "http://h", Transport: always(http.StatusNotFound, body)}, CategoryID: "1"})
		if err != nil {
			t.Fatal(err)
		}
		_, info, pageErr := read(t, c, "O1", 0, 10)
		_, recordErr := c.Record(t.Context(), "O1", "a")
		_, listErr := c.Organizations(t.Context())
		own := bytes.Contains(body, []byte("Not Found")) || bytes.Contains(body, []byte(`\`))
		if (pageErr == nil || core.CodeOf(recordErr) == core.CodeAbsent) && !own || info != (core.PageInfo{}) {
			t.Errorf("page %v, record %v of %q", pageErr, recordErr, body)
		}
		if core.CodeOf(listErr) != core.CodeUpstream || pageErr != nil && core.CodeOf(pageErr) != core.CodeUpstream {
			t.Errorf("list %v, page %v of %q", listErr, pageErr, body)
		}
		if (pageErr == nil) && !errors.Is(recordErr, core.ErrRecordAbsent) || errors.Is(pageErr, upstream.ErrTruncated) {
			t.Errorf("page %v, record %v of %q", pageErr, recordErr, body)
		}
	})
}
