// Package transport sends requests to an Elasticsearch cluster and classifies its errors. Every request is one of go-elasticsearch's
// esapi, sent by elastic-transport-go over net/http. The retries of elastic-transport-go are disabled: only the caller knows whether a
// body may be sent again. Client also has what all kinds of requests share: calls in progress, pooled buffers and points in time.
package transport
