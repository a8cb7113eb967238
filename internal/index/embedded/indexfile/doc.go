// Package indexfile keeps the documents of many indices in one bbolt file, with their segments beside it. It is the only user of bbolt: what
// it takes and returns are documents, row numbers and Snapshots. It knows the mapping of an index as a tree that it saves, and never checks a
// document against it.
//
// A File maps the names of aliases to indices. An Alias is one index: it is read through a call that Use begins, and changed by the committer
// alone, which groups Requests into transactions, applies changes of aliases, and owns the segment sets.
//
// # The layout
//
// An alias is one bucket with seven sub-buckets: ids (id → entry: version, row, terms), rows (row number → id, version and source),
// scopes (term and row → id and version, so that one organization is read without its sources), terms (field and value → number),
// tombstones (time and row → id), segments (the manifest of segment files) and deaths (documents deleted from those files since).
// Row numbers only grow, so sources, which are most of the bytes, are appended; only the ids bucket is written at random positions.
//
// The file is authoritative: a segment without its file is rebuilt from the sources at the next start. Another version of the layout is a
// number in format.go, another bucket or key goes to entry.go, another way to read documents beside find in read.go.
package indexfile
