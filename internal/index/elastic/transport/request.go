package transport

import (
	"bytes"
	"net/http"

	"github.com/elastic/go-elasticsearch/v8/esapi"
)

// isRead reports whether r is a read that is not a GET, which may be sent again.
func isRead(r esapi.Request) bool {
	switch r.(type) {
	case esapi.SearchRequest, esapi.MsearchRequest, esapi.CountRequest, esapi.MgetRequest:
		return true
	default:
		return false
	}
}

// SearchRequest returns a search of one index, or of the point in time in its body. It fails if any shard does not answer.
func SearchRequest(body []byte, alias ...string) esapi.SearchRequest {
	return esapi.SearchRequest{Index: alias, Body: bytes.NewReader(body), AllowPartialSearchResults: new(false)}
}

// NDJSON returns the header of a request whose body is newline-delimited JSON.
func NDJSON() http.Header { return http.Header{"Content-Type": {"application/x-ndjson"}} }
