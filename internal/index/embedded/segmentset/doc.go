// Package segmentset keeps the segments of an index in memory and in files: which there are, which of their documents are deleted, which
// state searches see, and when adjacent ones are merged. It knows neither the index file nor its aliases.
//
// A Set is the segments of one index, each a Member with its deletions and its file, and a Snapshot is what searches read of a Set, as of
// one transaction. An Update is the change of a Set by a transaction in progress, which a Writer builds the new segment of; a Swap is that
// by a goroutine in the background. Both are applied by the one goroutine that owns the Sets; published data is immutable.
//
// The Folder has the files. An Entry is what the index file's manifest says of one of them: a file that is not in the manifest is removed,
// and a Member without a file is rebuilt from its documents at the next start. The Merger merges as the rules in policy.go say; a new rule
// goes there, and another field of the manifest into entry.go.
package segmentset
