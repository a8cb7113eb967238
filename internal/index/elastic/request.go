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

// isRead reports whether r only reads although it is no GET, so that the cluster may be asked twice.
func isRead(r esapi.Request) bool {
	switch r.(type) {
	case esapi.SearchRequest, esapi.MsearchRequest, esapi.CountRequest, esapi.MgetRequest:
		return true
	default:
		return false
	}
}

// searchRequest returns a search of one index, or of the point in time that its body names. A shard that does not answer is
// the fault of the whole search.
func searchRequest(body []byte, alias ...string) esapi.SearchRequest {
	return esapi.SearchRequest{Index: alias, Body: bytes.NewReader(body), AllowPartialSearchResults: new(false)}
}

// bulkRequest returns a bulk request. The cluster gives up on a missing shard long before the request as a whole times out, so
// that the outcome is known, slots are free for other indices, and no document grows old in the cluster and is written when the
// shard reopens.
func (x *Index) bulkRequest(alias string, body []byte) esapi.BulkRequest {
	return esapi.BulkRequest{
		Index: alias, Body: bytes.NewReader(body), Header: http.Header{contentType: {contentNDJSON}},
		RequireAlias: new(true), Timeout: min(shardWait, x.timeout/2), FilterPath: []string{bulkFilterPath},
	}
}
