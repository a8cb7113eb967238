// Package elastic owns the engine of the index port that keeps its documents in an Elasticsearch cluster: encoding and
// sending bulk requests, telling their outcomes apart, growing the mapping, and the few reads that indexing needs. Every
// request is one of go-elasticsearch's esapi, sent by elastic-transport-go; the transport's own retries are off, since only
// the caller knows whether a body is still worth sending. It imports internal/core, internal/index and internal/index/mapping,
// never another adapter, and no package of consumers or bulk, whose engine it is.
package elastic
