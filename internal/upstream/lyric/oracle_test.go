package lyric_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"tutti/internal/core"
)

// transport returns the same response to every request, without a connection.
type transport func(*http.Request) *http.Response

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

func always(status int, body []byte) transport {
	return func(r *http.Request) *http.Response {
		return &http.Response{
			StatusCode: status, Header: http.Header{}, Request: r, ContentLength: int64(len(body)),
			Body: io.NopCloser(bytes.NewReader(body)),
		}
	}
}

// checkPage compares an accepted page of ten rows with what encoding/json reads.
func checkPage(t *testing.T, body []byte, got []core.Record, info core.PageInfo) {
	t.Helper()
	if !json.Valid(body) {
		t.Fatalf("took %q", body)
	}
	if bytes.Contains(body, []byte(`\`)) || repeats(body, "records") || repeats(body, "pagination") {
		return // encoding/json matches names case-insensitively, and uses the last of several
	}
	var want struct {
		Pagination struct{ CurrentPage, PageSize, TotalRecords int }
		Records    []json.RawMessage
	}
	if err := json.Unmarshal(body, &want); err != nil {
		t.Fatalf("%v of %q", err, body)
	}
	said := want.Pagination
	if len(got) != len(want.Records) || info.Rows != len(got) || info.Total != said.TotalRecords || said.CurrentPage != 1 || said.PageSize != 10 ||
		len(got) < min(10, said.TotalRecords) {
		t.Errorf("%d rows and %+v of %q", len(got), info, body)
	}
	for i, raw := range want.Records {
		if repeats(raw, "isvalid") {
			continue
		}
		var record struct{ IsValid *bool }
		if err := json.Unmarshal(raw, &record); err != nil || record.IsValid == nil || *record.IsValid != got[i].Indexable {
			t.Errorf("row %d is %+v of %q: %v", i, got[i], raw, err)
		}
	}
}

// repeats reports whether a name occurs twice, in any case.
func repeats(body []byte, name string) bool {
	return bytes.Count(bytes.ToLower(body), []byte(`"`+name+`"`)) > 1
}
