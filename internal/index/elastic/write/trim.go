package write

import (
	"tutti/internal/core"
	"tutti/internal/index/document"
	"tutti/internal/index/elastic/aliases"
)

// trimShare: if at least one in trimShare documents of a batch needed trimming, the next batches are trimmed before they are sent.
// Trimming costs some microseconds per document, a second sending about a hundred.
const trimShare = 16

// worthTrimming reports whether enough of a batch's documents were trimmed to trim the next batches before sending.
func worthTrimming(trimmed, of int) bool { return trimmed*trimShare >= of }

// trimAhead returns b's payload without members that have no value and are not in the mapping, nil if there are none. Documents
// that cannot be parsed stay unchanged; the cluster rejects them.
func trimAhead(st *aliases.Alias, b core.Batch) []byte {
	tree := st.Seen().Tree
	if tree == nil {
		return nil
	}
	out := make([]byte, 0, len(b.Payload()))
	trimmed := 0
	for i := range b.Items {
		var paths []string
		if b.Items[i].Op == core.OpIndex {
			paths, _ = document.Empties(tree, b.Document(i)) // nil with an error
		}
		if len(paths) > 0 {
			trimmed++
		}
		out = appendTrimmed(out, b, i, paths)
	}
	st.TrimFirst.Store(worthTrimming(trimmed, len(b.Items)))
	if trimmed == 0 {
		return nil
	}
	return out
}
