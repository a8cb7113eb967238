// Package elastic implements the index port on an Elasticsearch cluster. Index combines one type for each kind of work:
//
//   - admin.Creator creates aliases, admin.Reporter reports on them, and admin.Mover moves them;
//   - write.Writer sends bulk requests and extends mappings;
//   - read.Reader reads single documents, counts and scans;
//   - search.Searcher evaluates searches, which package dsl encodes and decodes.
//
// They share a transport.Client, which sends all requests, and metadata.Aliases, which caches mappings. Probe sends diagnostic requests.
package elastic
