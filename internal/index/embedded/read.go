package embedded

import (
	"context"

	"tutti/internal/core"
	"tutti/internal/index/embedded/indexfile"
)

// reader reads documents from the file.
type reader struct{ *shared }

// Get returns one document as last written. A large one waits for Config.Memory, which it does not hold afterwards.
func (x *reader) Get(ctx context.Context, name, id string) (doc core.StoredDocument, found bool, err error) {
	err = x.GetAll(ctx, name, []string{id}, func(_ int, stored core.StoredDocument, is bool) { doc, found = stored, is })
	return doc, found, err
}

// GetAll calls each for every id, in order, with its document as last written. Large documents wait for Config.Memory.
func (x *reader) GetAll(ctx context.Context, name string, ids []string, each func(i int, doc core.StoredDocument, found bool)) error {
	a, done, err := x.file.Use(name)
	if err != nil {
		return err
	}
	defer done()
	var small []byte
	for i, id := range ids {
		if small, err = x.getOne(ctx, a, id, small, func(doc core.StoredDocument, found bool) { each(i, doc, found) }); err != nil {
			return err
		}
	}
	return nil
}

// getOne calls use with a document, after the read transaction. It returns small, the buffer for documents that are not large.
func (x *reader) getOne(ctx context.Context, a *indexfile.Alias, id string, small []byte, use func(doc core.StoredDocument, found bool)) ([]byte, error) {
	release := func() {}
	defer func() { release() }()
	doc, found, err := a.Find(id, func(row indexfile.Row) (doc []byte, err error) {
		size, err := row.Size()
		if err != nil || size < largeDocument {
			return row.AppendDocument(small[:0])
		}
		acquired, err := x.cfg.Memory.Acquire(ctx, ownCaller("documents"), largeWeight*int64(size))
		if err != nil {
			return nil, err
		}
		release = acquired
		return row.AppendDocument(nil)
	})
	if err != nil {
		return small, err
	}
	if found && len(doc.Source) < largeDocument {
		small = doc.Source
	}
	use(doc, found)
	return small, nil
}

// Count returns the number of documents in scope.
func (x *reader) Count(ctx context.Context, name string, scope core.IndexScope) (int64, error) {
	a, done, err := x.file.Use(name)
	if err != nil {
		return 0, err
	}
	defer done()
	if scope == (core.IndexScope{}) {
		n, err := a.Documents()
		return int64(n), err
	}
	n := int64(0)
	err = a.Scan(ctx, scope, 0, func(found []indexfile.Hit) error {
		n += int64(len(found))
		return nil
	})
	return n, err
}

// Scan calls each between read transactions, never within one.
func (x *reader) Scan(ctx context.Context, name string, scope core.IndexScope, below core.Version,
	each func(id string, v core.Version) error,
) error {
	a, done, err := x.file.Use(name)
	if err != nil {
		return err
	}
	defer done()
	return a.Scan(ctx, scope, below, func(found []indexfile.Hit) error {
		for _, h := range found {
			if err := each(h.ID, h.Version); err != nil {
				return err
			}
		}
		return nil
	})
}

// Checkpoint returns "": a scan does not read the documents, so skipping unchanged ones would save little.
func (x *reader) Checkpoint(_ context.Context, name string) (string, error) {
	_, err := x.file.Alias(name)
	return "", err
}
