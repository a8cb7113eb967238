package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"

	"go.etcd.io/bbolt"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
	"tutti/internal/index/document"
	"tutti/internal/index/mapping"
)

// reader reads documents from the file.
type reader struct{ *store }

// Get returns one document as last written. A large one waits for Config.Memory, which it does not hold afterwards.
func (x *reader) Get(ctx context.Context, name, id string) (doc core.StoredDocument, found bool, err error) {
	err = x.GetAll(ctx, name, []string{id}, func(_ int, stored core.StoredDocument, is bool) { doc, found = stored, is })
	return doc, found, err
}

// find returns the document of an id, with what read returns of its row as its source.
func (x *reader) find(a *alias, id string, read func(row []byte) ([]byte, error)) (doc core.StoredDocument, found bool, err error) {
	err = x.viewIndex(a, func(_ *alias, b *bbolt.Bucket) error {
		var e entry
		raw := b.Bucket(bucketIDs()).Get([]byte(id))
		if raw == nil {
			return nil
		}
		if !readEntry(raw, &e) {
			return errCorrupt("entry")
		}
		if e.deleted {
			return nil
		}
		body, err := read(b.Bucket(bucketRows()).Get(rowKeyOf(e.row)))
		doc, found = core.StoredDocument{ID: id, Version: e.version, Source: body}, err == nil
		return err
	})
	return doc, found, err
}

// GetAll calls each for every id, in order, with its document as last written. Large documents wait for Config.Memory.
func (x *reader) GetAll(ctx context.Context, name string, ids []string, each func(i int, doc core.StoredDocument, found bool)) error {
	a, done, err := x.use(name)
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
func (x *reader) getOne(ctx context.Context, a *alias, id string, small []byte, use func(doc core.StoredDocument, found bool)) ([]byte, error) {
	release := func() {}
	defer func() { release() }()
	doc, found, err := x.find(a, id, func(row []byte) (doc []byte, err error) {
		size, err := sourceSize(row)
		if err != nil || size < largeDocument {
			return appendSource(small[:0], row)
		}
		acquired, err := x.cfg.Memory.Acquire(ctx, ownCaller("documents"), largeWeight*int64(size))
		if err != nil {
			return nil, err
		}
		release = acquired
		return source(row)
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
	n := int64(0)
	if scope == (core.IndexScope{}) {
		err := x.view(name, func(_ *alias, b *bbolt.Bucket) error {
			n = int64(liveOf(b))
			return nil
		})
		return n, err
	}
	err := x.scanPages(ctx, name, scope, 0, func(found []scanHit) error {
		n += int64(len(found))
		return nil
	})
	return n, err
}

// Scan calls each between read transactions, never within one.
func (x *reader) Scan(ctx context.Context, name string, scope core.IndexScope, below core.Version,
	each func(id string, v core.Version) error,
) error {
	return x.scanPages(ctx, name, scope, below, func(found []scanHit) error {
		for _, h := range found {
			if err := each(h.id, h.version); err != nil {
				return err
			}
		}
		return nil
	})
}

// scanHit is one document of a scan.
type scanHit struct {
	id      string
	version core.Version
}

const (
	// pageVisits is the number of entries that one read transaction of a scan visits.
	pageVisits = 2000
	// pageSources is the same number when sources have to be read.
	pageSources = 200
)

// scanPages reads the documents in scope page by page.
func (x *reader) scanPages(ctx context.Context, name string, scope core.IndexScope, below core.Version,
	each func(found []scanHit) error,
) error {
	a, done, err := x.use(name)
	if err != nil {
		return err
	}
	defer done()
	s := &scan{scope: scope, below: below}
	for !s.ended {
		if err := ctx.Err(); err != nil {
			return core.WrapError(core.CodeUnavailable, "reading the index was cancelled", err)
		}
		s.found = s.found[:0]
		if err := x.viewIndex(a, s.page); err != nil {
			return err
		}
		if err := each(s.found); err != nil {
			return err
		}
	}
	return nil
}

// scan is the state of a scan between its pages.
type scan struct {
	scope core.IndexScope
	below core.Version
	// started is set with last, the highest row when the scan started: later rows were rewritten since.
	started bool
	last    uint64
	after   []byte
	ended   bool
	found   []scanHit
	entry   entry
}

// page reads the next page along the shortest way: the entries of one organization, or all ids.
func (s *scan) page(a *alias, b *bbolt.Bucket) error {
	if !s.started {
		s.started, s.last = true, b.Bucket(bucketRows()).Sequence()
	}
	s.ended = true
	code, ok := findTerm(b, slices.Index(scopeFields(), codeField), s.scope.Repository)
	if !ok {
		return nil
	}
	field := slices.Index(scopeFields(), s.scope.Field)
	switch {
	case s.scope.Field == "":
		return s.ids(b, code, nil)
	case field < 0:
		return s.ids(b, code, a.tree.Load())
	}
	organization, ok := findTerm(b, field, s.scope.Organization)
	if !ok || organization == 0 {
		return nil
	}
	return s.organization(b, organization, code)
}

// findTerm returns the number of a value, zero for the empty value; false when no document ever had it.
func findTerm(b *bbolt.Bucket, field int, value string) (term, bool) {
	if value == "" {
		return 0, true
	}
	raw := b.Bucket(bucketTerms()).Get(append([]byte{byte('0' + field)}, value...))
	if len(raw) != 4 {
		return 0, false
	}
	return term(binary.BigEndian.Uint32(raw)), true
}

// seek moves to the first entry after after.
func seek(c *bbolt.Cursor, after []byte) (key, value []byte) {
	key, value = c.Seek(after)
	if key != nil && bytes.Equal(key, after) {
		return c.Next()
	}
	return key, value
}

// organization reads the entries of one organization.
func (s *scan) organization(b *bbolt.Bucket, organization, code term) error {
	prefix := binary.BigEndian.AppendUint32(nil, uint32(organization))
	if s.after == nil {
		s.after = prefix
	}
	c := b.Bucket(bucketScopes()).Cursor()
	key, value := seek(c, s.after)
	for visits := 0; key != nil && bytes.HasPrefix(key, prefix); key, value = c.Next() {
		if len(key) != scopeKey || len(value) < rowKey {
			return errCorrupt("scope")
		}
		if binary.BigEndian.Uint64(key[len(prefix):]) > s.last {
			return nil
		}
		if visits == pageVisits {
			s.ended = false
			return nil
		}
		visits++
		s.after = append(s.after[:0], key...)
		version := core.Version(binary.BigEndian.Uint64(value))
		terms, id := readTerms(value[rowKey:], s.entry.terms[:0])
		if id == nil {
			return errCorrupt("scope")
		}
		s.entry.terms = terms
		if s.scope.Includes(version, s.below) && hasTerm(terms, code) {
			s.found = append(s.found, scanHit{id: string(id), version: version})
		}
	}
	return nil
}

// ids reads all entries, and, with a tree, the sources of candidates, for a field that has no terms.
func (s *scan) ids(b *bbolt.Bucket, code term, tree *mapping.Field) error {
	most := pageVisits
	values := valueFinder{}
	if tree != nil {
		most = pageSources
		if values.field = tree.Lookup(s.scope.Field); values.field == nil {
			return nil
		}
	}
	rows, c := b.Bucket(bucketRows()), b.Bucket(bucketIDs()).Cursor()
	key, value := seek(c, s.after)
	for visits := 0; key != nil; key, value = c.Next() {
		if visits == most {
			s.ended = false
			return nil
		}
		visits++
		s.after = append(s.after[:0], key...)
		if !readEntry(value, &s.entry) {
			return errCorrupt("entry")
		}
		if s.entry.deleted || !s.scope.Includes(s.entry.version, s.below) || !hasTerm(s.entry.terms, code) {
			continue
		}
		if tree != nil {
			in, err := values.holds(tree, rows.Get(rowKeyOf(s.entry.row)), s.scope.Organization)
			if err != nil {
				return err
			}
			if !in {
				continue
			}
		}
		s.found = append(s.found, scanHit{id: string(key), version: s.entry.version})
	}
	return nil
}

// valueFinder searches a document for one value of one field.
type valueFinder struct {
	checker document.Checker
	field   *mapping.Field
	want    string
	found   bool
	buf     []byte
	doc     []byte
}

// holds reports whether the document of a row has the value.
func (s *valueFinder) holds(tree *mapping.Field, row []byte, want string) (bool, error) {
	doc, err := appendSource(s.doc[:0], row)
	if err != nil {
		return false, err
	}
	if s.doc = doc; len(doc) >= largeDocument {
		s.doc = nil
	}
	s.want, s.found = want, false
	// The error is ignored: the document may be older than the field's type and not fit it.
	_, _ = s.checker.Check(tree, doc, s)
	return s.found, nil
}

// Enter does nothing.
func (s *valueFinder) Enter(*mapping.Field) {}

// Leave does nothing.
func (s *valueFinder) Leave(*mapping.Field) {}

// Value compares one value of the field.
func (s *valueFinder) Value(f *mapping.Field, kind document.Kind, raw []byte) {
	if f != s.field || kind == document.KindObject {
		return
	}
	s.buf = jsontext.AppendUnescaped(s.buf[:0], raw)
	s.found = s.found || string(s.buf) == s.want
}

// Checkpoint returns "": a scan does not read the documents, so skipping unchanged ones would save little.
func (x *reader) Checkpoint(_ context.Context, name string) (string, error) {
	_, err := x.alias(name)
	return "", err
}
