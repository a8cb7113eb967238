package elastic

import (
	"bytes"
	"net/http"

	"github.com/elastic/go-elasticsearch/v8/esapi"
)

const (
	contentType   = "Content-Type"
	contentNDJSON = "application/x-ndjson"
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

// searchRequest returns a search of one index, or of the point in time in its body. It fails if any shard does not answer.
func searchRequest(body []byte, alias ...string) esapi.SearchRequest {
	return esapi.SearchRequest{Index: alias, Body: bytes.NewReader(body), AllowPartialSearchResults: new(false)}
}

// bulkRequest returns a bulk request. The cluster stops waiting for a missing shard long before the request times out: the
// outcome is known, other indices are not delayed, and no document becomes outdated in the cluster before it is written.
func (x *Index) bulkRequest(alias string, body []byte) esapi.BulkRequest {
	return esapi.BulkRequest{
		Index: alias, Body: bytes.NewReader(body), Header: http.Header{contentType: {contentNDJSON}},
		RequireAlias: new(true), Timeout: min(shardWait, x.timeout/2), FilterPath: []string{bulkFilterPath},
	}
}
