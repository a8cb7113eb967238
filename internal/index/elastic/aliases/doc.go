// Package aliases reads and changes what an Elasticsearch cluster stores about aliases: their mappings, indices and shards. It caches the
// mapping of each alias.
//
// Its tests are in internal/index/elastic.
package aliases
