package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/elastic/elastic-transport-go/v8/elastictransport"
	"github.com/elastic/go-elasticsearch/v8/esapi"
)

// late is a transport that answers before it has read the body and reads on later, which net/http may do.
type late struct{ bodies []io.ReadCloser }

func (l *late) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.ReadFull(r.Body, make([]byte, 4)); err != nil {
		return nil, err
	}
	again, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	l.bodies = append(l.bodies, r.Body, again)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

// TestLateReadsGetNothing is in the package, as only a transport of its own can be late for certain.
func TestLateReadsGetNothing(t *testing.T) {
	slow := &late{}
	transport, err := elastictransport.NewClient(elastictransport.WithURLs(&url.URL{Scheme: "http", Host: "node"}),
		elastictransport.WithDisableRetry(), elastictransport.WithTransport(slow))
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{Transport: transport, cfg: Config{Timeout: time.Minute, MaxResponseBytes: DefaultMaxResponseBytes}}
	if _, err := c.Do(t.Context(), esapi.BulkRequest{Body: strings.NewReader("0123456789")}, nil); err != nil {
		t.Fatal(err)
	}
	for _, body := range slow.bodies {
		if got, err := io.ReadAll(body); len(got) > 0 || !errors.Is(err, errReleased) {
			t.Errorf("read %q, %v after the answer", got, err)
		}
	}
	if err := transport.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
