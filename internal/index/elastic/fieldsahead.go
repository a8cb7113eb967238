package elastic

import (
	"context"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

// readBatches is how many batches in a row must bring nothing new before documents are sent unread.
const readBatches = 2

// addFieldsAhead adds the fields that b's documents bring before they are sent, after the mapping was made or read anew: under a
// strict mapping the cluster turns away every document of a batch, and of those that fly beside it, for one field that
// all of them bring, and each would have to be sent twice. Whatever goes wrong here, the cluster's answers tell (grow).
func (x *Index) addFieldsAhead(ctx context.Context, st *aliasState, b core.Batch) {
	if st.unreadAfter.Load() <= 0 || st.lock(ctx) != nil {
		return
	}
	defer st.unlock()
	tree := st.tree.Load()
	if tree == nil || tree.Dynamic != mapping.DynamicStrict {
		st.unreadAfter.Store(0)
		return
	}
	added := newFields(tree, b)
	if added.Empty() {
		st.unreadAfter.Add(-1)
		return
	}
	st.unreadAfter.Store(readBatches)
	if err := x.addFields(ctx, st, b.Index, tree, added); err != nil {
		x.logger.Debug("fields could not be added beforehand", "index", b.Index, "error_type", typeOf(err))
		st.unreadAfter.Store(0)
	}
}

// newFields gives what b's documents add to tree, nil for nothing. A document that contradicts it, or those before, is
// left to the cluster.
func newFields(tree *mapping.Field, b core.Batch) *mapping.Field {
	var added *mapping.Field
	for i := range b.Items {
		if b.Items[i].Op != core.OpIndex {
			continue
		}
		grown, own, err := mapping.Grow(tree, b.Document(i))
		if err != nil || own.Empty() {
			continue
		}
		merged, err := mapping.Merge(added, own)
		if err != nil {
			continue
		}
		tree, added = grown, merged
	}
	return added
}
