package http_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"tutti/http/api"
	"tutti/http/search"
	"tutti/internal/core"
)

// searches are func-field mocks of what answers questions about documents.
type searches struct {
	execute  func(ctx context.Context, catalogueID string, who core.Principal, r core.GraphQLRequest) (core.GraphQLResponse, error)
	download func(ctx context.Context, catalogueID string, who core.Principal, r core.DownloadRequest, begin core.BeginDownload) error
	values   func(catalogueID string, who core.Principal, fields []string, most int) (map[string]core.FieldValues, error)
	// indexed is when every index was last written.
	indexed time.Time
}

var (
	_ search.GraphQL   = (*searches)(nil)
	_ search.Downloads = (*searches)(nil)
	_ search.Data      = (*searches)(nil)
)

func (s *searches) IndexedAt(string) time.Time { return s.indexed }

func (s *searches) Values(_ context.Context, id string, who core.Principal, fields []string, most int) (map[string]core.FieldValues, error) {
	return s.values(id, who, fields, most)
}

func (s *searches) Execute(ctx context.Context, id string, who core.Principal, r core.GraphQLRequest) (core.GraphQLResponse, error) {
	return s.execute(ctx, id, who, r)
}

func (s *searches) Download(ctx context.Context, id string, who core.Principal, r core.DownloadRequest, begin core.BeginDownload) error {
	return s.download(ctx, id, who, r, begin)
}

const answered = `{"data":{"__typename":"Root"}}`

// workingSearches answer everything alike.
func workingSearches() *searches {
	return &searches{
		execute: func(context.Context, string, core.Principal, core.GraphQLRequest) (core.GraphQLResponse, error) {
			return core.GraphQLResponse{Body: []byte(answered)}, nil
		},
		download: func(_ context.Context, _ string, _ core.Principal, _ core.DownloadRequest, begin core.BeginDownload) error {
			w, err := begin(core.DownloadHead{ContentType: core.MediaTSV, FileName: "documents.tsv"})
			if err != nil {
				return err
			}
			_, err = io.WriteString(w, "id\nA\n")
			return err
		},
		values: func(string, core.Principal, []string, int) (map[string]core.FieldValues, error) { return nil, nil },
	}
}

// seen is what a mock was asked for.
type seen struct {
	catalogue string
	who       core.Principal
	operation core.GraphQLRequest
	download  core.DownloadRequest
}

// searched returns a handler over catalogues and what its mocks were asked for last.
func searched(t testing.TB, cfg api.Config, all ...*core.Catalogue) (handler, *ports, *seen) {
	t.Helper()
	p, last := working(), &seen{}
	p.catalogues.put(all...)
	execute, download := p.searches.execute, p.searches.download
	p.searches.execute = func(ctx context.Context, id string, who core.Principal, r core.GraphQLRequest) (core.GraphQLResponse, error) {
		*last = seen{catalogue: id, who: who, operation: r}
		return execute(ctx, id, who, r)
	}
	p.searches.download = func(ctx context.Context, id string, who core.Principal, r core.DownloadRequest, begin core.BeginDownload) error {
		*last = seen{catalogue: id, who: who, download: r}
		return download(ctx, id, who, r, begin)
	}
	return newHandler(t, p, cfg), p, last
}

const typename = `{"query":"{ __typename }"}`

// post sends a body that is declared as JSON.
func post(t *testing.T, h handler, target, body string) (*http.Response, []byte) {
	t.Helper()
	return do(t, h, ask{method: "POST", target: target, body: body, header: http.Header{"Content-Type": {"application/json"}}})
}
