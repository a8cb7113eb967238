// Package embedded implements the index that runs inside the process: many aliases in one bbolt file of the data folder, with
// Elasticsearch's semantics of writes, versions and mappings. It may import internal/core, internal/index, internal/index/document,
// internal/index/mapping and its own segment and evaluate; it is the only user of bbolt and never imports the other engine.
//
// An alias is one bucket with seven sub-buckets: ids (id → entry: version, row, terms), rows (row number → id, version and source),
// scopes (term and row → id and version, so that one organization is read without its sources), terms (field and value → number),
// tombstones (time and row → id), segments (the manifest of segment files) and deaths (documents deleted from those files since).
// Row numbers only grow, so sources, which are most of the bytes, are appended; only the ids bucket is written at random positions.
//
// # Searching
//
// Searches read segments, which are in memory or mapped from files. Each transaction builds one segment of the documents that it stores, marks those that it
// rewrites or removes as deleted in older segments, and publishes both with one pointer; published data is immutable. Adjacent
// segments are merged in the background, and large ones are stored in files of the folder segments. The bbolt file is
// authoritative: a segment without its file is rebuilt from the sources at the next start, and a file that is not in the manifest
// is removed.
package embedded
