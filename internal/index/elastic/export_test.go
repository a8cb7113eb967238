package elastic

import (
	"net/http"
	"net/url"

	"github.com/elastic/elastic-transport-go/v8/elastictransport"

	"tutti/internal/index/elastic/transport"
)

// SendBy makes x send its requests by to instead of over the network.
func (x *Index) SendBy(to http.RoundTripper) error {
	transport, err := elastictransport.NewClient(
		elastictransport.WithURLs(&url.URL{Scheme: "http", Host: "node"}), elastictransport.WithTransport(to), elastictransport.WithDisableRetry())
	if err == nil {
		x.client.Transport = transport
	}
	return err
}

// KeepAtMost makes one Search of x keep so many bytes of documents at most.
func (x *Index) KeepAtMost(bytes int64) { x.MaxSourceBytes = bytes }

// ErrOverLimit returns the cause of the error for a response over the size limit.
func ErrOverLimit() error { return transport.ErrOverLimit }
