package lyric_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
	"tutti/internal/tools/testkit/dataset"
	"tutti/internal/upstream/lyric"
)

func TestRecord(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.LyricConfig{})
	want := core.Record{ID: "a", Organization: "O1", Indexable: true, Plain: true, Body: []byte(put(t, server, "O1", "a", true))}
	c := client(t, server, lyric.Config{ValidOnly: true})
	for _, organization := range []string{"O1", "another"} {
		got, err := c.Record(t.Context(), organization, "a")
		if d := cmp.Diff(want, got, cmpopts.IgnoreFields(core.Record{}, "Shape")); d != "" || err != nil {
			t.Errorf("asked under %s: %v (-want +got):\n%s", organization, err, d)
		}
	}
	server.SetValid("a", false)
	got, err := c.Record(t.Context(), "O1", "a")
	if err != nil || got.Indexable || string(got.Body) != envelope("a", "O1", false) {
		t.Errorf("invalid: %+v, %v", got, err)
	}
	got, err = client(t, server, lyric.Config{}).Record(t.Context(), "O1", "a")
	if err != nil || !got.Indexable {
		t.Errorf("invalid, which does not matter: %+v, %v", got, err)
	}
	if n := server.RecordRequests("a"); n != 4+2 { // each client requests its first record again, once it knows the category
		t.Errorf("%d calls", n)
	}
}

func TestRecordIsCompound(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.LyricConfig{CentralEntity: "donor"})
	record := dataset.GenerateRecords(1, "O1", 1)[0]
	server.PutAll(record)
	got, err := client(t, server, lyric.Config{}).Record(t.Context(), "O1", record.SystemID)
	if err != nil || string(got.Body) != string(record.Body) {
		t.Errorf("%s, %v", got.Body, err)
	}
}

func TestRecordOfManyShapesOfID(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.LyricConfig{})
	c := client(t, server, lyric.Config{Entity: "donor"})
	for _, id := range []string{"..%2F", "a/b", "../../category/1", "%", "?", "#", "a b", "😀", "...", `q"q`, "a\\b", "\x01", "+", "a;b"} {
		organization := "O " + id
		body := fmt.Sprintf(`{"data":{},"entityName":"donor","isValid":true,"organization":%s,"systemId":%s}`, quote(t, organization), quote(t, id))
		if err := server.Put(organization, []byte(body)); err != nil {
			t.Fatal(err)
		}
		r, err := c.Record(t.Context(), organization, id)
		if err != nil || r.ID != id || r.Organization != organization || !r.Indexable {
			t.Errorf("%q: %+v, %v", id, r, err)
		}
		records, _, err := read(t, c, organization, 0, 5)
		if err != nil || len(records) != 1 || records[0].ID != id {
			t.Errorf("%q: page of %d, %v", id, len(records), err)
		}
	}
	for _, raw := range server.RawPaths() {
		if strings.Count(raw, "/") != 5 {
			t.Errorf("an id left its segment: %s", raw)
		}
	}
	n := len(server.RawPaths())
	for _, id := range []string{"", ".", ".."} {
		_, err := c.Record(t.Context(), "O", id)
		wantError(t, id, err, core.CodeInvalid, "an id must not be empty or a relative path segment")
	}
	if len(server.RawPaths()) != n {
		t.Error("calls were made")
	}
}

func quote(t *testing.T, s string) string {
	t.Helper()
	quoted, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(quoted)
}

func TestRecordMustBeARecord(t *testing.T) {
	t.Parallel()
	const shape = "the upstream's record has an unexpected format"
	server := serve(t, testkit.LyricConfig{})
	c := client(t, server, lyric.Config{})
	for body, want := range map[string]struct {
		code    core.Code
		message string
	}{
		`{}`:                         {core.CodeUnavailable, shape},
		`{"status":"up"}`:            {core.CodeUnavailable, shape},
		`[]`:                         {core.CodeUnavailable, "the upstream's answer has an unexpected format"},
		`true`:                       {core.CodeUnavailable, "the upstream's answer is not JSON"},
		``:                           {core.CodeUnavailable, "the upstream's answer was cut short"},
		`{"systemId":"a","isV`:       {core.CodeUnavailable, "the upstream's answer was cut short"},
		`<html>`:                     {core.CodeUnavailable, "the upstream's answer is not JSON"},
		`{"systemId":"a"}`:           {core.CodeUnavailable, shape},
		`{"pagination":{}}`:          {core.CodeUnavailable, shape},
		envelope("a", "", true):      {core.CodeUnavailable, shape},
		envelope("", "O1", true):     {core.CodeUnavailable, shape},
		envelope("b", "O1", true):    {core.CodeUpstream, "the upstream answered with another record"},
		envelope("a ", "O1", true):   {core.CodeUpstream, "the upstream answered with another record"},
		withValid(t, `null`):         {core.CodeUnavailable, shape},
		withValid(t, `"true"`):       {core.CodeUnavailable, shape},
		withValid(t, `[true]`):       {core.CodeUnavailable, shape},
		withValid(t, `{"is":false}`): {core.CodeUnavailable, shape},
	} {
		server.ClearFaults()
		server.Fail(testkit.Fault{Status: http.StatusOK, Body: body})
		_, err := c.Record(t.Context(), "O1", "a")
		wantError(t, body, err, want.code, want.message)
	}
}

func withValid(t *testing.T, value string) string {
	t.Helper()
	body := envelope("a", "O1", true)
	changed := strings.Replace(body, `"isValid":true`, `"isValid":`+value, 1)
	if changed == body {
		t.Fatal("the envelope has changed")
	}
	return changed
}

func TestErrorDocuments(t *testing.T) {
	t.Parallel()
	const (
		absent    = "the record does not exist upstream"
		elsewhere = "the record belongs to another category upstream"
		category  = "the upstream has no such category, or the category has no dictionary"
		status    = "the upstream answered with status 404"
	)
	document := func(name, message string) string {
		return fmt.Sprintf(`{"error":%q,"message":%q}`, name, message)
	}
	tests := []struct {
		name   string
		status int
		body   string
		// code and message of Record; page and list are the messages of Page and Organizations, "" for no error.
		code       core.Code
		message    string
		page, list string
		is         error
	}{
		{"no data", 404, document("Not Found", "No Submitted data found"), core.CodeAbsent, absent, "", status, lyric.ErrRecordAbsent},
		{"no record", 404, document("Not Found", "No Submitted data found with systemId 'a'"), core.CodeAbsent, absent, "", status, core.ErrRecordAbsent},
		{"other category", 404, document("Not Found", "Invalid Category ID '1' for system ID 'a'"), core.CodeAbsent, elsewhere, status, status, core.ErrRecordAbsent},
		{"no category", 404, document("Not Found", "Category '1' not found"), core.CodeUpstream, category, category, category, lyric.ErrNoCategory},
		{"no dictionary", 404, document("Not Found", "Invalid Category ID"), core.CodeUpstream, category, category, category, lyric.ErrNoCategory},
		{
			"no category, before 1.0", 400, document("Bad Request", "Category not found"),
			core.CodeUpstream, category, category, category, lyric.ErrNoCategory,
		},
		{
			"no compound view", 500, document("Internal Server Error", "An error occurred while converting records into compound view"),
			core.CodeUnavailable, "the upstream failed to build the compound view of a record",
			"the upstream failed to build the compound view of a record", "the upstream failed to build the compound view of a record", nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, testkit.LyricConfig{})
			server.Fail(testkit.Fault{Status: tt.status, ContentType: "application/json", Body: tt.body})
			c := client(t, server, lyric.Config{})
			_, err := c.Record(t.Context(), "O1", "a")
			wantError(t, "record", err, tt.code, tt.message)
			if tt.code == core.CodeUnavailable && core.HintOf(err) != "Lyric's log names the record" {
				t.Errorf("hint %q", core.HintOf(err))
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%v is not %v", err, tt.is)
			}
			if errors.Is(err, core.ErrOrganizationAbsent) {
				t.Errorf("%v speaks of the organization", err)
			}
			_, _, pageErr := read(t, c, "O1", 0, 1)
			_, listErr := c.Organizations(t.Context())
			for message, err := range map[string]error{tt.page + "|page": pageErr, tt.list + "|list": listErr} {
				message, what, _ := strings.Cut(message, "|")
				code := core.CodeUpstream
				if tt.code == core.CodeUnavailable {
					code = core.CodeUnavailable
				}
				switch {
				case message != "":
					wantError(t, what, err, code, message)
				case err != nil:
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

// TestNoCategory uses the test server, whose two routes return the real server's errors.
func TestNoCategory(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.LyricConfig{})
	put(t, server, "O1", "a", true)
	c := client(t, server, lyric.Config{CategoryID: "2"})
	_, listErr := c.Organizations(t.Context())
	_, _, pageErr := read(t, c, "O1", 0, 1)
	_, recordErr := c.Record(t.Context(), "O1", "a")
	for what, err := range map[string]error{"list": listErr, "page": pageErr, "record": recordErr} {
		wantError(t, what, err, core.CodeUpstream, "the upstream has no such category, or the category has no dictionary")
		if !errors.Is(err, lyric.ErrNoCategory) || core.HintOf(err) != "check the repository's lyric.categoryId" {
			t.Errorf("%s: %v, hint %q", what, err, core.HintOf(err))
		}
	}
	_, err := client(t, server, lyric.Config{}).Record(t.Context(), "O1", "b")
	wantError(t, "no record", err, core.CodeAbsent, "the record does not exist upstream")
}
