package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

	"tutti/internal/core"
	"tutti/internal/index/document"
	"tutti/internal/index/embedded/indexfile"
	"tutti/internal/index/embedded/segment/fieldvalue"
	"tutti/internal/index/mapping"
)

// Write applies b in one durable transaction, which it shares with concurrent Writes.
func (x *writer) Write(ctx context.Context, b core.Batch) ([]core.Result, error) {
	done, err := x.file.Begin()
	if err != nil {
		return nil, err
	}
	defer done()
	if err := ctx.Err(); err != nil {
		return nil, core.WrapError(core.CodeUnavailable, "writing to the index was cancelled", err)
	}
	a, err := x.file.Alias(b.Index)
	if err != nil {
		return blockedResults(len(b.Items), err), nil
	}
	before := a.Tree()
	req, results := x.prepare(a, b)
	if len(req.Changes) == 0 {
		return results, nil
	}
	if err := x.file.Write(ctx, req); err != nil {
		return nil, err
	}
	if a.Tree() != before {
		x.cfg.Grown(b.Index)
	}
	return results, nil
}

// blockedResults returns the results of a batch for an alias that does not exist.
func blockedResults(n int, err error) []core.Result {
	results := make([]core.Result, n)
	for i := range results {
		results[i] = core.Result{
			Outcome: core.OutcomeRetry, Code: core.CodeIndexBlocked,
			Type: "index_not_found_exception", Reason: core.MessageOf(err),
		}
	}
	return results
}

// writer prepares batches and passes them to the file.
type writer struct {
	*shared
	scratch sync.Pool
}

// Encode appends only the document: the batch's items have the rest.
func (x *writer) Encode(dst []byte, w core.Write) (out []byte, docStart, docEnd int) {
	docStart = len(dst)
	if w.Op == core.OpIndex {
		dst = append(dst, w.Document...)
	}
	return dst, docStart, len(dst)
}

// writeScratch holds the reusable buffers of a Write: a checker and the collector of terms. types are those of the Write's alias.
type writeScratch struct {
	checker document.Checker
	terms   termSink
	types   *mapping.Types
}

// prepare converts a batch to changes, and sets the results of rejected items. It does not access the file.
func (x *writer) prepare(a *indexfile.Alias, b core.Batch) (*indexfile.Request, []core.Result) {
	ln, _ := x.scratch.Get().(*writeScratch)
	if ln == nil {
		ln = &writeScratch{checker: document.Checker{Opaque: fieldvalue.Check}}
	}
	defer x.scratch.Put(ln)
	ln.types = x.types.Of(b.Index)
	results := make([]core.Result, len(b.Items))
	req := &indexfile.Request{Alias: a, Changes: make([]indexfile.Change, 0, len(b.Items))}
	arena := make([]byte, 0, indexfile.RowsCapacity(b))
	for i, item := range b.Items {
		c := indexfile.Change{ID: item.ID, Version: item.Version, Strict: item.Strict, Deleted: item.Op == core.OpDelete, Result: &results[i]}
		if err := checkItem(item); err != nil {
			reject(c.Result, err)
			continue
		}
		if !c.Deleted {
			doc := b.Document(i)
			if err := ln.accept(a, doc); err != nil {
				reject(c.Result, err)
				continue
			}
			start := len(arena)
			arena = indexfile.AppendRow(arena, c.ID, c.Version, doc)
			c.Row = arena[start:len(arena):len(arena)]
			c.Document = doc
			c.Terms = slices.Clone(ln.terms.found)
		}
		req.Changes = append(req.Changes, c)
	}
	req.Bytes = len(arena)
	return req, results
}

// reject sets the result of a document that can never be stored.
func reject(r *core.Result, err error) {
	r.Outcome, r.Type, r.Reason = core.OutcomeRejected, core.TypeIllegalArgument, err.Error()
	r.Hint = document.RejectionHint(r.Reason)
	if parsing, ok := errors.AsType[*document.ParsingError](err); ok {
		r.Type = parsing.Type
	}
}

// checkItem applies Elasticsearch's rules for ids and external versions.
func checkItem(item core.BatchItem) error {
	reason := ""
	switch {
	case item.ID == "":
		reason = "the id is empty"
	case len(item.ID) > core.MaxIDBytes:
		reason = fmt.Sprintf("id is too long, must be no longer than %d bytes but was: %d", core.MaxIDBytes, len(item.ID))
	case !utf8.ValidString(item.ID):
		reason = "the id is not valid UTF-8"
	case item.Version < 0:
		reason = "the version is negative"
	default:
		return nil
	}
	return &document.ParsingError{Type: core.TypeIllegalArgument, Reason: reason}
}

// accept checks doc, collects its terms, and adds its new fields to the mapping.
func (ln *writeScratch) accept(a *indexfile.Alias, doc []byte) error {
	tree := a.Tree()
	unknown, err := ln.checker.Check(tree, doc, ln.terms.reset(tree))
	if err != nil {
		return err
	}
	if unknown {
		return ln.grow(a, doc)
	}
	return ln.checkObjects(a)
}

// checkObjects rejects a document with more objects in nested fields than the index takes.
func (ln *writeScratch) checkObjects(a *indexfile.Alias) error {
	if fault := a.Limits.ExceededBy(ln.terms.Objects); fault != "" {
		return &document.ParsingError{Type: core.TypeParsing, Reason: fault}
	}
	return nil
}

// grow adds the fields of doc to the mapping, and collects its terms. A document that cannot be stored adds none.
func (ln *writeScratch) grow(a *indexfile.Alias, doc []byte) error {
	return a.Grow(func(tree *mapping.Field) (*mapping.Field, error) {
		grown, added, err := document.Grow(tree, ln.types, doc)
		if err != nil {
			return nil, err
		}
		if added != nil {
			if fault := a.Limits.Exceeded(grown); fault != "" {
				return nil, &document.ParsingError{Type: core.TypeIllegalArgument, Reason: fault}
			}
		}
		if _, err := ln.checker.Check(grown, doc, ln.terms.reset(grown)); err != nil {
			return nil, err
		}
		return grown, ln.checkObjects(a)
	})
}

// maxTermBytes is the length of the longest value that a scope can select by; organizations and codes are far shorter.
const maxTermBytes = 2 * core.MaxIDBytes

// maxTerms is the number of values of a document that scopes can select by.
const maxTerms = 255

// termSink collects the values that scopes select by: the record's organization and the codes of its repositories. It also counts the
// objects in nested fields.
type termSink struct {
	document.NestedCounter

	tree     *mapping.Field
	fields   []*mapping.Field
	found    []string
	buf      []byte
	interned map[string]string
}

// maxInterned bounds the number of strings cached in a termSink.
const maxInterned = 4096

func (s *termSink) reset(tree *mapping.Field) *termSink {
	s.found, s.Objects = s.found[:0], 0
	if s.tree != tree {
		s.tree = tree
		s.fields = s.fields[:0]
		for _, name := range indexfile.ScopeFields() {
			s.fields = append(s.fields, tree.Lookup(name))
		}
	}
	if s.interned == nil || len(s.interned) > maxInterned {
		s.interned = map[string]string{}
	}
	return s
}

// Value adds the value of a scope field, wherever in the document it occurs.
func (s *termSink) Value(f *mapping.Field, kind document.Kind, raw []byte) {
	i := slices.Index(s.fields, f)
	if i < 0 || kind == document.KindObject || len(raw) > maxTermBytes || len(s.found) == maxTerms {
		return
	}
	s.buf = indexfile.AppendTerm(s.buf[:0], i, raw)
	found, ok := s.interned[string(s.buf)]
	if !ok {
		found = string(s.buf)
		s.interned[found] = found
	}
	if !slices.Contains(s.found, found) {
		s.found = append(s.found, found)
	}
}
