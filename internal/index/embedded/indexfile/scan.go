package indexfile

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

// Hit is one document of a Scan.
type Hit struct {
	ID      string
	Version core.Version
}

const (
	// pageVisits is the number of entries that one read transaction of a scan visits.
	pageVisits = 2000
	// pageSources is the same number when sources have to be read.
	pageSources = 200
)

// Scan calls each with the documents in scope, page by page, between read transactions.
func (a *Alias) Scan(ctx context.Context, scope core.IndexScope, below core.Version, each func(found []Hit) error) error {
	s := &scan{scope: scope, below: below}
	for !s.ended {
		if err := ctx.Err(); err != nil {
			return core.WrapError(core.CodeUnavailable, "reading the index was cancelled", err)
		}
		s.found = s.found[:0]
		if err := a.view(func(b *bbolt.Bucket) error { return s.page(a, b) }); err != nil {
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
	found   []Hit
	entry   entry
}

// page reads the next page along the shortest way: the entries of one organization, or all ids.
func (s *scan) page(a *Alias, b *bbolt.Bucket) error {
	if !s.started {
		s.started, s.last = true, b.Bucket(bucketRows()).Sequence()
	}
	s.ended = true
	code, ok := findTerm(b, slices.Index(ScopeFields(), codeField), s.scope.Repository)
	if !ok {
		return nil
	}
	field := slices.Index(ScopeFields(), s.scope.Field)
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
			s.found = append(s.found, Hit{ID: string(id), Version: version})
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
		s.found = append(s.found, Hit{ID: string(key), Version: s.entry.version})
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
func (s *valueFinder) holds(tree *mapping.Field, row Row, want string) (bool, error) {
	doc, err := row.AppendDocument(s.doc[:0])
	if err != nil {
		return false, err
	}
	if s.doc = doc; len(doc) >= LargeDocument {
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
