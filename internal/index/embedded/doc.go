// Package embedded owns the index that runs inside the process: many aliases in one bbolt file of the data folder, with
// the meaning of writes, versions and mappings that Elasticsearch gives them. It may import internal/core,
// internal/index, internal/index/mapping and its own segment and evaluate; it is the only user of bbolt and never imports the
// other engine.
//
// An alias is one bucket that holds seven: ids (id → entry: version, row, terms), rows (row number → id, version and
// source), scopes (term and row → id and version, so that one organization is read without its sources), terms (field
// and value → number), tombstones (time and row → id), segments (the files of segments) and deaths (what died in them). Row numbers only grow, so that sources,
// which are most of the bytes, are appended; what is random is the ids bucket alone.
//
// # Searching
//
// Searches read segments in memory. Each transaction makes one of the documents that it stores, marks those that it rewrites or
// removes as dead in older segments, and shows both by one pointer; nothing that is shown ever changes. Neighbouring segments
// are merged in the background, and those of some size are kept in files of the folder segments. The file of bbolt is the truth:
// a segment without its file is made of the sources at the next start, and a file that is not in the manifest is removed.
package embedded
