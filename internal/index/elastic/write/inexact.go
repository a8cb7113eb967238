package write

import (
	"context"

	"tutti/internal/core"
	"tutti/internal/index/document"
	"tutti/internal/index/elastic/aliases"
)

// inexact returns the results of those documents of b that have a whole number which a field of the type double, that nothing declares, may
// change: the cluster would take it. It reads only documents with a number of that many digits. The error is of a request to the cluster.
func (m *mapper) inexact(ctx context.Context, st *aliases.Alias, b core.Batch) (rejected map[int]core.Result, err error) {
	for i := range b.Items {
		if item := &b.Items[i]; item.Op != core.OpIndex || item.Plain || !document.MayBeInexact(b.Document(i)) {
			continue
		}
		fault, err := m.checkExact(ctx, st, b.Index, b.Document(i))
		if err != nil {
			return nil, err
		}
		if fault == nil {
			continue
		}
		if rejected == nil {
			rejected = map[int]core.Result{}
		}
		rejected[i] = *rejection(fault)
	}
	return rejected, nil
}

// checkExact returns why a document has an inexact number, nil if it has none.
func (m *mapper) checkExact(ctx context.Context, st *aliases.Alias, alias string, doc []byte) (fault, err error) {
	var checker document.Checker
	if tree := st.Seen().Tree; tree != nil {
		unknown, fault := checker.Check(tree, doc, nil)
		if document.Inexact(fault) || !unknown {
			return exactness(fault), nil
		}
	}
	seen, err := m.meta.Read(ctx, alias)       // another process may have added the field
	if core.CodeOf(err) == core.CodeInternal { // a mapping that only the cluster understands
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if _, fault = document.Derive(seen.Tree, m.meta.Types.Of(alias), doc); fault == nil {
		_, fault = checker.Check(seen.Tree, doc, nil)
	}
	return exactness(fault), nil
}

// exactness returns fault if it is about an inexact number: the cluster judges all else.
func exactness(fault error) error {
	if document.Inexact(fault) {
		return fault
	}
	return nil
}
