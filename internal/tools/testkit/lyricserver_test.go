package testkit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/tools/testkit"
	"tutti/internal/tools/testkit/dataset"
)

func serveLyric(t *testing.T, cfg testkit.LyricConfig) *testkit.LyricServer {
	t.Helper()
	s, err := testkit.NewLyric(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// tabular is a record with one scalar and one related entity.
func tabular(id, organization, entity string, valid bool) []byte {
	return fmt.Appendf(nil, `{"data":{"name":%q,"words":["a"],"samples":[{"x":1}],"parent":{"y":2}},"entityName":%q,"isValid":%v,"organization":%q,"systemId":%q}`,
		"n "+id, entity, valid, organization, id)
}

func flatTabular(id, organization, entity string, valid bool) string {
	return strings.Replace(string(tabular(id, organization, entity, valid)), `,"samples":[{"x":1}],"parent":{"y":2}`, "", 1)
}

func putTabular(t *testing.T, s *testkit.LyricServer, list string, bodies ...[]byte) {
	t.Helper()
	for _, body := range bodies {
		if err := s.Put(list, body); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLyricServerData(t *testing.T) {
	t.Parallel()
	s := serveLyric(t, testkit.LyricConfig{})
	ids := func(organization string) string {
		var list []string
		for _, r := range s.Records(organization) {
			list = append(list, fmt.Sprintf("%s %v", r.SystemID, r.IsValid))
		}
		return strings.Join(list, ",")
	}
	expect := func(step, want string) {
		t.Helper()
		if got := ids("O"); got != want {
			t.Errorf("%s: %s, want %s", step, got, want)
		}
	}
	putTabular(t, s, "O", tabular("a", "O", "donor", true), tabular("b", "O", "sample", true), tabular("c", "O", "donor", false))
	expect("by entity, then as they came", "a true,c false,b true")
	putTabular(t, s, "O", tabular("a", "lies", "donor", false))
	expect("replaced in its place", "a false,c false,b true")
	if r, ok := s.Record("a"); !ok || r.Organization != "lies" || string(r.Body) != string(tabular("a", "lies", "donor", false)) {
		t.Errorf("a is %+v", r)
	}
	if !s.SetValid("a", true) || s.SetValid("nobody", true) {
		t.Error("SetValid")
	}
	if r, _ := s.Record("a"); string(r.Body) != string(tabular("a", "lies", "donor", true)) || !r.IsValid {
		t.Errorf("a is %s", r.Body)
	}
	if !s.Remove("c") || s.Remove("c") {
		t.Error("Remove")
	}
	expect("removed", "a true,b true")
	putTabular(t, s, "P", tabular("b", "P", "sample", true))
	expect("moved", "a true")
	s.AddOrganizations("O", "Z", "A")
	if d := cmp.Diff([]string{"A", "O", "P", "Z"}, s.Organizations()); d != "" {
		t.Errorf("organizations (-want +got):\n%s", d)
	}
	s.DropOrganization("O")
	if _, ok := s.Record("a"); ok || ids("O") != "" {
		t.Error("O is still there")
	}
	for _, bad := range []string{
		`{`, `[]`, `{"data":{},"entityName":"d","isValid":true,"organization":"O"}`,
		`{"data":{},"entityName":"d","isValid":"true","organization":"O","systemId":"x"}`,
		`{"data":[],"entityName":"d","isValid":true,"organization":"O","systemId":"x"}`,
	} {
		if err := s.Put("O", []byte(bad)); !errors.Is(err, dataset.ErrNoLyricRecord) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestLyricServerAnswers(t *testing.T) {
	t.Parallel()
	s := serveLyric(t, testkit.LyricConfig{BasePath: "/lyric", CategoryID: 7, Alias: "clinical"})
	row := func(id string) string { return string(tabular(id, "O/1", "donor", id != "b")) }
	for _, id := range []string{"a", "b", "c"} {
		putTabular(t, s, "O/1", []byte(row(id)))
	}
	putTabular(t, s, "P", tabular("p", "P", "donor", true))
	page := func(number, size, pages, total int, rows ...string) string {
		return fmt.Sprintf(`200 {"pagination":{"currentPage":%d,"pageSize":%d,"totalPages":%d,"totalRecords":%d},"records":[%s]}`,
			number, size, pages, total, strings.Join(rows, ","))
	}
	const list = "/data/category/7/organization/O%2F1"
	refused := func(status int, name, message string) string {
		return fmt.Sprintf(`%d {"error":%q,"message":%q}`, status, name, message)
	}
	for path, want := range map[string]string{
		list + "?view=compound&page=1&pageSize=2":             page(1, 2, 2, 3, row("a"), row("b")),
		list + "?view=compound&page=2&pageSize=2":             page(2, 2, 2, 3, row("c")),
		list + "?view=compound&page=3&pageSize=2":             refused(404, "Not Found", "No Submitted data found"),
		list + "?pageSize=1":                                  page(1, 1, 3, 3, flatTabular("a", "O/1", "donor", true)),
		list + "?view=Compound&pageSize=1x":                   page(1, 1, 3, 3, row("a")),
		list + "?view=nested":                                 refused(400, "Bad Request", "view is Invalid enum value. Expected 'flat' | 'compound', received 'nested'"),
		list + "?page=x&pageSize=0":                           refused(400, "Bad Request", "page is Expected number, received nan | pageSize is Invalid input"),
		"/data/category/7/organization/nobody":                refused(404, "Not Found", "No Submitted data found"),
		"/data/category/7/organization/%20":                   refused(400, "Bad Request", "organization is String must contain at least 1 character(s)"),
		"/data/category/8/organization/P":                     refused(404, "Not Found", "Category '8' not found"),
		"/data/category/%C3%A9/organization/P":                refused(400, "Bad Request", "categoryId is invalid category ID"),
		"/data/category/clinical?view=compound&pageSize=2":    page(1, 2, 2, 4, row("a"), row("b")),
		"/data/category/7x?page=9":                            refused(404, "Not Found", "No Submitted Data found"),
		"/data/category/7/id/b?view=compound":                 "200 " + row("b"),
		"/data/category/7/id/b":                               "200 " + flatTabular("b", "O/1", "donor", false),
		"/data/category/7/id/nobody?view=compound":            refused(404, "Not Found", "No Submitted data found with systemId 'nobody'"),
		"/data/category/8/id/b":                               refused(404, "Not Found", "Category '8' not found"),
		"/category/none":                                      refused(404, "Not Found", "Category 'none' not found"),
		"/data/category/7/organization/O/1":                   "404 html",
		"/data/category/7/organization/":                      "404 html",
		"/other":                                              "404 html",
		"/data/category/7/organization/P?page=99999999999999": refused(404, "Not Found", "No Submitted data found"),
	} {
		status, body, err := get(t, s.URL()+path)
		got := fmt.Sprintf("%d %s", status, body)
		if strings.Contains(body, "<pre>Cannot GET /lyric/") {
			got = fmt.Sprintf("%d html", status)
		}
		if err != nil || got != want {
			t.Errorf("%s: %s %v, want %s", path, got, err, want)
		}
	}
	_, body, err := get(t, s.URL()+"/category/"+s.CategoryID())
	var category struct {
		Alias, Name   string
		ID            int
		Organizations []string
	}
	if err := errors.Join(err, json.Unmarshal([]byte(body), &category)); err != nil || category.ID != 7 || category.Alias != "clinical" ||
		cmp.Diff([]string{"O/1", "P"}, category.Organizations) != "" {
		t.Errorf("category: %s, %v", body, err)
	}
	if _, body, err := get(t, s.URL()+"/health"); err != nil || !strings.Contains(body, `"message":"OK"`) || s.Requests(testkit.LyricRouteAlive) != 1 {
		t.Errorf("health: %s, %v", body, err)
	}
	if s.RecordRequests("b") != 3 || s.Requests(testkit.LyricRouteCategory) != 2 || len(s.PageCalls()) != 14 || len(s.RawPaths()) != 24 {
		t.Errorf("counts: %d of b, %d categories, %d pages, %d paths", s.RecordRequests("b"), s.Requests(testkit.LyricRouteCategory),
			len(s.PageCalls()), len(s.RawPaths()))
	}
}

func TestLyricServerCentralEntity(t *testing.T) {
	t.Parallel()
	s := serveLyric(t, testkit.LyricConfig{CentralEntity: "donor"})
	putTabular(t, s, "O", tabular("a", "O", "donor", true), tabular("f", "O", "family", true), tabular("b", "O", "donor", true), tabular("z", "O", "biopsy", true))
	putTabular(t, s, "E", tabular("e", "E", "sample", true))
	for path, want := range map[string]string{
		"/organization/O?view=compound": `"totalRecords":2},"records":[` + string(tabular("a", "O", "donor", true)) + "," + string(tabular("b", "O", "donor", true)) + "]}",
		"/organization/O":               `"totalRecords":4},"records":[` + flatTabular("z", "O", "biopsy", true),
		"/organization/E?view=compound": "No Submitted data found",
		"/id/e?view=compound":           flatTabular("e", "E", "sample", true),
		"/id/a?view=compound":           string(tabular("a", "O", "donor", true)),
	} {
		if _, body, err := get(t, s.URL()+"/data/category/1"+path); err != nil || !strings.Contains(body, want) {
			t.Errorf("%s: %s %v, want %s", path, body, err, want)
		}
	}
}

func TestLyricServerShapesOfPages(t *testing.T) {
	t.Parallel()
	const path = "/data/category/1/organization/O?view=compound&pageSize=5"
	row := tabular("a", "O", "donor", true)
	for name, tt := range map[string]struct {
		cfg  testkit.LyricConfig
		want string
	}{
		"pagination last": {
			testkit.LyricConfig{PaginationLast: true},
			`{"records":[` + string(row) + `],"pagination":{"currentPage":1,"pageSize":5,"totalPages":1,"totalRecords":1}}`,
		},
		"capped": {
			testkit.LyricConfig{MaxPageSize: 2},
			`{"pagination":{"currentPage":1,"pageSize":2,"totalPages":1,"totalRecords":1},"records":[` + string(row) + `]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveLyric(t, tt.cfg)
			putTabular(t, s, "O", row)
			if _, body, err := get(t, s.URL()+path); err != nil || body != tt.want {
				t.Errorf("%s %v, want %s", body, err, tt.want)
			}
		})
	}
}

func TestLyricServerRefusesAndFails(t *testing.T) {
	t.Parallel()
	s := serveLyric(t, testkit.LyricConfig{Token: "t"})
	if status, body, err := get(t, s.URL()+"/category/1"); err != nil || status != http.StatusUnauthorized || body != `{"message":"Unauthorized: invalid token"}` {
		t.Errorf("%d %s %v", status, body, err)
	}
	open := serveLyric(t, testkit.LyricConfig{})
	for name, tt := range map[string]struct {
		fault testkit.Fault
		want  string
	}{
		"status":    {testkit.Fault{Status: 503, Times: 1}, `503 {"error":"Service Unavailable","message":"told to fail"}`},
		"own body":  {testkit.Fault{Status: 404, Body: "x", Times: 1}, `404 x`},
		"truncated": {testkit.Fault{Truncate: 3, Times: 1}, `200 {"c`},
	} {
		open.Fail(tt.fault)
		if status, body, err := get(t, open.URL()+"/category/1"); err != nil || strconv.Itoa(status)+" "+body != tt.want {
			t.Errorf("%s: %d %s %v", name, status, body, err)
		}
		open.ClearFaults()
	}
	open.Fail(testkit.Fault{Cut: 3})
	if _, body, err := get(t, open.URL()+"/category/1"); err == nil {
		t.Errorf("cut: %q", body)
	}
}

// TestLyricServerCloseEndsHeldCalls hangs if Close waits for the fault.
func TestLyricServerCloseEndsHeldCalls(t *testing.T) {
	t.Parallel()
	s := serveLyric(t, testkit.LyricConfig{})
	s.Fail(testkit.Fault{Release: make(chan struct{})})
	done := make(chan error)
	go func() {
		_, _, err := get(t, s.URL()+"/category/1")
		done <- err
	}()
	s.Close()
	if err := <-done; err == nil {
		t.Error("the held call was answered")
	}
}

func TestLyricServerBeforePage(t *testing.T) {
	t.Parallel()
	s := serveLyric(t, testkit.LyricConfig{BeforePage: func(s *testkit.LyricServer, n int, call testkit.LyricPageCall) {
		if n == 1 {
			s.Remove(call.Organization + "-1")
		}
	}})
	for i := range 4 {
		putTabular(t, s, "O", tabular("O-"+strconv.Itoa(i), "O", "donor", true))
	}
	for n, want := range []string{`"systemId":"O-1"}]}`, `"systemId":"O-3"}]}`} {
		path := fmt.Sprintf("/data/category/1/organization/O?view=compound&pageSize=2&page=%d", n+1)
		if _, body, err := get(t, s.URL()+path); err != nil || !strings.HasSuffix(body, want) {
			t.Errorf("page %d: %s, %v", n+1, body, err)
		}
	}
	want := []testkit.LyricPageCall{
		{Organization: "O", View: "compound", Page: 1, PageSize: 2}, {Organization: "O", View: "compound", Page: 2, PageSize: 2},
	}
	if d := cmp.Diff(want, s.PageCalls()); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
}
