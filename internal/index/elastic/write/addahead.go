package write

import (
	"context"

	"tutti/internal/core"
	"tutti/internal/index/document"
	"tutti/internal/index/elastic/aliases"
	"tutti/internal/index/elastic/transport"
	"tutti/internal/index/mapping"
)

// addAhead adds new fields of b to a strict mapping before b is sent, for the first batches after the mapping was created or read
// again. Otherwise one field that all documents add would get every document of this batch and of concurrent ones rejected and sent
// twice. Errors are ignored: grow handles the rejections.
func (m *mapper) addAhead(ctx context.Context, st *aliases.Alias, b core.Batch) {
	if st.UnreadAfter.Load() <= 0 || st.Lock(ctx) != nil {
		return
	}
	defer st.Unlock()
	seen := st.Seen()
	if seen.Tree == nil || seen.Tree.Dynamic != mapping.DynamicStrict {
		st.UnreadAfter.Store(0)
		return
	}
	types := m.meta.Types.Of(b.Index)
	if newFields(seen.Tree, types, b).Empty() {
		st.UnreadAfter.Add(-1)
		return
	}
	st.UnreadAfter.Store(aliases.ReadBatches)
	seen, err := m.read(ctx, st, b.Index)
	if err == nil {
		_, err = m.meta.AddFields(ctx, st, b.Index, seen, newFields(seen.Tree, types, b))
	}
	if err != nil {
		m.logger.Debug("fields could not be added before sending", "index", b.Index, "error_type", transport.TypeOf(err))
		st.UnreadAfter.Store(0)
	}
}

// newFields returns the fields that b's documents add to tree, by the types decided before, nil for none. It skips documents that contradict the tree or
// earlier documents; the cluster rejects them.
func newFields(tree *mapping.Field, types *mapping.Types, b core.Batch) *mapping.Field {
	var added *mapping.Field
	for i := range b.Items {
		if b.Items[i].Op != core.OpIndex {
			continue
		}
		grown, own, err := document.Grow(tree, types, b.Document(i))
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
