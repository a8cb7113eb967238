package embedded

import (
	"tutti/internal/core"
	"tutti/internal/index/embedded/indexfile"
)

// File returns the file of an index.
func File(x *Index) *indexfile.File { return x.file }

// Prepare prepares a batch as Write does.
func Prepare(x *Index, b core.Batch) {
	if a, err := x.file.Alias(b.Index); err == nil {
		x.prepare(a, b)
	}
}

// Project returns what a projection on paths keeps of a document in a buffer of a capacity.
func Project(paths []string, doc []byte, capacity int) (kept []byte, fits bool) {
	return newProjection(paths).append(make([]byte, 0, capacity), doc)
}
