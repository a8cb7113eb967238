// Package merged lets several repositories write to one index: the same record or file of two repositories is one document with a block
// for each of them.
//
// An Index is a layer on an engine. It adds the field mapping.Shared to the documents of a shared index, with an entry for each
// repository: the version of its last write, its record and that record's hash. A write reads the document, changes the entry and the
// block of its own repository, and stores the result with the version after the one that it has read, strictly: of several writers that
// have read the same version one succeeds, and the others read again. So the engine's versions of these documents only count changes,
// and those of a repository's records are in its entries.
//
// A removal leaves no entry. So that an older write in flight does not restore the block, the removal first writes a marker: the
// tombstone of a document that never exists, whose version is the removal's. The removal changes the document in any case, even if it has
// no block in it or is absent, so that a write which has read it before must read it again, and notes in it that there was a removal. A
// write that adds a block to such a document, or makes one where a tombstone is, first writes the marker with its own version, which fails
// after a later removal.
//
// The document is made of the record with the newest updatedAt or, when not all have one, of the newest Request. Records that differ from
// it in more than the dates that each repository sets are conflicts.
//
// Its tests are in internal/index/embedded and internal/index/elastic.
package merged
