package apitest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"tutti/http/api"
	"tutti/http/search"
	"tutti/internal/core"
)

var (
	_ search.GraphQL   = (*Searches)(nil)
	_ search.Downloads = (*Searches)(nil)
	_ search.Data      = (*Searches)(nil)
)

// Searches are func-field mocks of what answers questions about documents.
type Searches struct {
	ExecuteFn  func(ctx context.Context, catalogueID string, who core.Principal, r core.GraphQLRequest) (core.GraphQLResponse, error)
	DownloadFn func(ctx context.Context, catalogueID string, who core.Principal, r core.DownloadRequest, begin core.BeginDownload) error
	ValuesFn   func(catalogueID string, who core.Principal, fields []string, most int) (map[string]core.FieldValues, error)
	// Indexed is when every index was last written.
	Indexed time.Time
}

// IndexedAt implements search.Data.
func (s *Searches) IndexedAt(string) time.Time { return s.Indexed }

// Values implements search.Data.
func (s *Searches) Values(_ context.Context, id string, who core.Principal, fields []string, most int) (map[string]core.FieldValues, error) {
	return s.ValuesFn(id, who, fields, most)
}

// Execute implements search.GraphQL.
func (s *Searches) Execute(ctx context.Context, id string, who core.Principal, r core.GraphQLRequest) (core.GraphQLResponse, error) {
	return s.ExecuteFn(ctx, id, who, r)
}

// Download implements search.Downloads.
func (s *Searches) Download(ctx context.Context, id string, who core.Principal, r core.DownloadRequest, begin core.BeginDownload) error {
	return s.DownloadFn(ctx, id, who, r, begin)
}

// Answered is the answer of WorkingSearches to every operation.
const Answered = `{"data":{"__typename":"Root"}}`

// WorkingSearches answer everything alike.
func WorkingSearches() *Searches {
	return &Searches{
		ExecuteFn: func(context.Context, string, core.Principal, core.GraphQLRequest) (core.GraphQLResponse, error) {
			return core.GraphQLResponse{Body: []byte(Answered)}, nil
		},
		DownloadFn: func(_ context.Context, _ string, _ core.Principal, _ core.DownloadRequest, begin core.BeginDownload) error {
			w, err := begin(core.DownloadHead{ContentType: core.MediaTSV, FileName: "documents.tsv"})
			if err != nil {
				return err
			}
			_, err = io.WriteString(w, "id\nA\n")
			return err
		},
		ValuesFn: func(string, core.Principal, []string, int) (map[string]core.FieldValues, error) { return nil, nil },
	}
}

// Seen is what a mock was asked for.
type Seen struct {
	Catalogue string
	Who       core.Principal
	Operation core.GraphQLRequest
	Download  core.DownloadRequest
}

// Searched returns a handler over catalogues and what its mocks were asked for last.
func Searched(t testing.TB, cfg api.Config, all ...*core.Catalogue) (Handler, *Ports, *Seen) {
	t.Helper()
	p, last := Working(), &Seen{}
	p.Catalogues.Put(all...)
	execute, download := p.Searches.ExecuteFn, p.Searches.DownloadFn
	p.Searches.ExecuteFn = func(ctx context.Context, id string, who core.Principal, r core.GraphQLRequest) (core.GraphQLResponse, error) {
		*last = Seen{Catalogue: id, Who: who, Operation: r}
		return execute(ctx, id, who, r)
	}
	p.Searches.DownloadFn = func(ctx context.Context, id string, who core.Principal, r core.DownloadRequest, begin core.BeginDownload) error {
		*last = Seen{Catalogue: id, Who: who, Download: r}
		return download(ctx, id, who, r, begin)
	}
	return NewHandler(t, p, cfg), p, last
}

// Typename is a body with the smallest operation.
const Typename = `{"query":"{ __typename }"}`

// Post sends a body that is declared as JSON.
func Post(t *testing.T, h Handler, target, body string) (*http.Response, []byte) {
	t.Helper()
	return Do(t, h, Ask{Method: "POST", Target: target, Body: body, Header: http.Header{"Content-Type": {"application/json"}}})
}

// Writing returns a download of some pieces, which then fails where there is an error.
func Writing(head core.DownloadHead, fails error, pieces ...string) func(context.Context, string, core.Principal, core.DownloadRequest, core.BeginDownload) error {
	return func(_ context.Context, _ string, _ core.Principal, _ core.DownloadRequest, begin core.BeginDownload) error {
		w, err := begin(head)
		if err != nil {
			return err
		}
		for _, piece := range pieces {
			if n, err := io.WriteString(w, piece); err != nil || n != len(piece) {
				return fmt.Errorf("%d bytes: %w", n, err)
			}
		}
		return fails
	}
}
