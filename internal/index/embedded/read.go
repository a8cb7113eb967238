package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"

	"go.etcd.io/bbolt"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

// view runs one read transaction over an alias; it must be short, and keeps nothing of the bucket's memory.
func (x *Index) view(name string, read func(a *alias, b *bbolt.Bucket) error) error {
	if err := x.begin(); err != nil {
		return err
	}
	defer x.calls.Done()
	a, err := x.alias(name)
	if err != nil {
		return err
	}
	err = x.db.View(func(tx *bbolt.Tx) error { return read(a, aliasBucket(tx, name)) })
	if err != nil && core.CodeOf(err) == core.CodeInternal {
		return core.WrapError(core.CodeUnavailable, "the index could not be read", err)
	}
	return err
}

// Get returns one document as last written.
func (x *Index) Get(_ context.Context, name, id string) (doc core.StoredDocument, found bool, err error) {
	err = x.view(name, func(_ *alias, b *bbolt.Bucket) error {
		var e entry
		raw := b.Bucket(bucketIDs()).Get([]byte(id))
		if raw == nil {
			return nil
		}
		if !readEntry(raw, &e) {
			return errCut("entry")
		}
		if e.deleted {
			return nil
		}
		body, err := source(b.Bucket(bucketRows()).Get(rowKeyOf(e.row)))
		doc, found = core.StoredDocument{ID: id, Version: e.version, Source: body}, err == nil
		return err
	})
	return doc, found, err
}

// Count returns the number of documents in scope.
func (x *Index) Count(ctx context.Context, name string, scope core.IndexScope) (int64, error) {
	n := int64(0)
	if scope == (core.IndexScope{}) {
		err := x.view(name, func(_ *alias, b *bbolt.Bucket) error {
			n = int64(liveOf(b))
			return nil
		})
		return n, err
	}
	err := x.pages(ctx, name, scope, 0, func(found []hit) error {
		n += int64(len(found))
		return nil
	})
	return n, err
}

// Scan calls each between read transactions, never within one.
func (x *Index) Scan(ctx context.Context, name string, scope core.IndexScope, below core.Version,
	each func(id string, v core.Version) error,
) error {
	return x.pages(ctx, name, scope, below, func(found []hit) error {
		for _, h := range found {
			if err := each(h.id, h.version); err != nil {
				return err
			}
		}
		return nil
	})
}

// hit is one document of a scan.
type hit struct {
	id      string
	version core.Version
}

const (
	// pageVisits is how many entries one read transaction of a scan looks at.
	pageVisits = 2000
	// pageSources is how many where their sources have to be read.
	pageSources = 200
)

// pages reads the documents in scope page by page.
func (x *Index) pages(ctx context.Context, name string, scope core.IndexScope, below core.Version,
	each func(found []hit) error,
) error {
	s := &scan{scope: scope, below: below}
	for !s.ended {
		if err := ctx.Err(); err != nil {
			return core.WrapError(core.CodeUnavailable, "reading the index was given up", err)
		}
		s.found = s.found[:0]
		if err := x.view(name, s.page); err != nil {
			return err
		}
		if err := each(s.found); err != nil {
			return err
		}
	}
	return nil
}

// scan is where a scan stands between its pages.
type scan struct {
	scope core.IndexScope
	below core.Version
	// started, with last, the highest row when the scan began: rows after it were rewritten since.
	started bool
	last    uint64
	after   []byte
	ended   bool
	found   []hit
	entry   entry
}

// page reads on from where the last page ended, along the shortest way: one organization's entries, or all ids.
func (s *scan) page(a *alias, b *bbolt.Bucket) error {
	if !s.started {
		s.started, s.last = true, b.Bucket(bucketRows()).Sequence()
	}
	s.ended = true
	code, ok := findTerm(b, 2, s.scope.Repository)
	if !ok {
		return nil
	}
	field := slices.Index(organizationFields(), s.scope.Field)
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

func organizationFields() []string {
	fields := scopeFields()
	return fields[:2]
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

// seek stands at the entry behind after.
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
			return errCut("scope")
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
			return errCut("scope")
		}
		s.entry.terms = terms
		if s.scope.Includes(version, s.below) && hasTerm(terms, code) {
			s.found = append(s.found, hit{id: string(id), version: version})
		}
	}
	return nil
}

// ids reads all entries; with a tree, the sources of those in question too, for a field that has no terms.
func (s *scan) ids(b *bbolt.Bucket, code term, tree *mapping.Field) error {
	most := pageVisits
	values := fieldSink{}
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
			return errCut("entry")
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
		s.found = append(s.found, hit{id: string(key), version: s.entry.version})
	}
	return nil
}

// fieldSink looks for one value of one field.
type fieldSink struct {
	checker mapping.Checker
	field   *mapping.Field
	want    string
	found   bool
	buf     []byte
}

// holds reports whether the document of a row has the value.
func (s *fieldSink) holds(tree *mapping.Field, row []byte, want string) (bool, error) {
	doc, err := source(row)
	if err != nil {
		return false, err
	}
	s.want, s.found = want, false
	// A field may have got its type after this document, which then need not fit it: what was found counts.
	_, _ = s.checker.Check(tree, doc, s)
	return s.found, nil
}

// Enter has nothing to do.
func (s *fieldSink) Enter(*mapping.Field) {}

// Leave has nothing to do.
func (s *fieldSink) Leave(*mapping.Field) {}

// Value compares one value of the field.
func (s *fieldSink) Value(f *mapping.Field, kind mapping.Kind, raw []byte) {
	if f != s.field || kind == mapping.KindObject {
		return
	}
	s.buf = mapping.Unquote(s.buf[:0], raw)
	s.found = s.found || string(s.buf) == s.want
}

// Mark returns none: a scan reads versions without the documents, so there is little to leave out.
func (x *Index) Mark(_ context.Context, name string) (string, error) {
	_, err := x.alias(name)
	return "", err
}
