// Package embedded owns the index that runs inside the process: many aliases in one bbolt file of the data folder, with
// the meaning of writes, versions and mappings that Elasticsearch gives them. It may import internal/core,
// internal/index and internal/index/mapping; it is the only user of bbolt and never imports the other engine.
//
// An alias is one bucket that holds five: ids (id → entry: version, row, terms), rows (row number → id, version and
// source), scopes (term and row → id and version, so that one organization is read without its sources), terms (field
// and value → number) and tombstones (time and row → id). Row numbers only grow, so that sources, which are most of
// the bytes, are appended; what is random is the ids bucket alone.
package embedded
