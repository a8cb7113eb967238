// Package segmentset keeps the segments of indices in memory and in files: which there are, which of their documents are deleted, what searches
// see, and when adjacent segments are merged. It knows neither the index file nor aliases.
//
// A Set is the segments of one index, each a Member with its deletions and its file. A Snapshot is what searches see of a Set, as of one
// transaction. An Update is the change of a Set by a transaction in progress, whose new segment a Writer builds; a Swap is the change by a
// goroutine in the background. Both are applied by one goroutine, that of the Owner; what is published is immutable.
//
// A Folder has the files. An Entry is what the manifest in the index file says of one of them: a file that is not in the manifest is removed,
// and a segment without a file is built from its documents at the next start, by Rebuilders. The Merger merges.
//
// Another rule of merging goes to policy.go, another field of the manifest to entry.go, and another reason not to use a file to load.go.
package segmentset
