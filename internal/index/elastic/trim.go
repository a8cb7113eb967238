package elastic

import (
	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

// trimShare is the share of a batch, as one in so many, from which on documents are trimmed before they are sent.
// Trimming costs some microseconds a document, sending one twice about a hundred.
const trimShare = 16

// worthTrimming tells whether so many of a batch's documents had to be trimmed that it is done beforehand from now on.
func worthTrimming(trimmed, of int) bool { return trimmed*trimShare >= of }

// trimAhead gives b's payload without members that hold no value on paths that the mapping lacks, nil when there are
// none. Documents that cannot be read go as they are: it is for the cluster to refuse them.
func (x *Index) trimAhead(st *aliasState, b core.Batch) []byte {
	tree := st.tree.Load()
	if tree == nil {
		return nil
	}
	out := make([]byte, 0, len(b.Payload()))
	trimmed := 0
	for i := range b.Items {
		var empties []string
		if b.Items[i].Op == core.OpIndex {
			empties, _ = mapping.Empties(tree, b.Document(i)) // none beside an error
		}
		if len(empties) > 0 {
			trimmed++
		}
		out = appendTrimmed(out, b, i, empties)
	}
	st.trimFirst.Store(worthTrimming(trimmed, len(b.Items)))
	if trimmed == 0 {
		return nil
	}
	return out
}
