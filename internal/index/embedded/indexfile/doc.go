// Package indexfile stores the documents of many indices in one bbolt file, with their segments beside it. It is the only user of bbolt, none of
// whose types it returns. It saves the mapping of an index, but does not check by it what is written.
//
// A File maps the names of aliases to indices. An Alias is one index, which a caller reads between Use and done. A Request is the checked
// Changes of one Write: the committer, the one goroutine that writes documents, groups Requests into transactions, changes aliases, and owns
// the segment sets. A Row is a stored document, and its number the key by which segments refer to it. A term is a value that scopes select by.
//
// # The layout
//
// An index is one bucket with seven sub-buckets: ids (id → entry: version, row, terms), rows (row number → id, version and source),
// scopes (term and row → id and version, so that one organization is read without its sources), terms (field and value → number),
// tombstones (time and row → id), segments (the manifest of segment files) and deaths (documents deleted from those files since).
// Row numbers only grow, so sources, which are most of the bytes, are appended; only the ids bucket is written at random positions.
//
// The file is authoritative: a segment without its file is rebuilt from the sources at the next start.
//
// Another bucket or key goes to entry.go, and another version of the layout to format.go; another codec of sources to row.go, another way to
// read documents to read.go or scan.go, and another change of aliases to aliases.go.
package indexfile
