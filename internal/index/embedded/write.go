package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/klauspost/compress/s2"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
	"tutti/internal/index/document"
	"tutti/internal/index/embedded/segment/fieldvalue"
	"tutti/internal/index/mapping"
)

// Write applies b in one durable transaction, which it shares with concurrent Writes.
func (x *writer) Write(ctx context.Context, b core.Batch) ([]core.Result, error) {
	if err := x.beginCall(); err != nil {
		return nil, err
	}
	defer x.calls.Done()
	if err := ctx.Err(); err != nil {
		return nil, core.WrapError(core.CodeUnavailable, "writing to the index was cancelled", err)
	}
	a, err := x.alias(b.Index)
	if err != nil {
		return blockedResults(len(b.Items), err), nil
	}
	before := a.tree.Load()
	req := x.prepare(a, b)
	if len(req.changes) == 0 {
		return req.results, nil
	}
	select {
	case x.queue <- req:
	case <-ctx.Done():
		return nil, core.WrapError(core.CodeUnavailable, "writing to the index was cancelled", ctx.Err())
	}
	// From here on ctx is ignored: the transaction decides the outcome, and soon ends.
	if err := <-req.done; err != nil {
		return nil, err
	}
	if a.tree.Load() != before {
		x.cfg.Grown(b.Index)
	}
	return req.results, nil
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

// writer prepares batches and passes them to a committer.
type writer struct {
	*store
	queue   chan<- *request
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

// change is one write whose document is checked and encoded, but whose version is not yet compared.
type change struct {
	id      string
	version core.Version
	strict  bool
	deleted bool
	// row is the encoded row (appendRow), document its source.
	row, document []byte
	// terms are the field and value pairs that scopes select by.
	terms []string
	// result receives the outcome.
	result *core.Result
}

// writeScratch holds the reusable buffers of a Write: a checker and the collector of terms. types are those of the Write's alias.
type writeScratch struct {
	checker document.Checker
	terms   termSink
	types   *mapping.Types
}

// prepare converts a batch to changes, and sets the results of rejected items. It does not access the file.
func (x *writer) prepare(a *alias, b core.Batch) *request {
	ln, _ := x.scratch.Get().(*writeScratch)
	if ln == nil {
		ln = &writeScratch{checker: document.Checker{Opaque: fieldvalue.Check}}
	}
	defer x.scratch.Put(ln)
	ln.types = x.types.Of(b.Index)
	req := &request{
		alias: a, results: make([]core.Result, len(b.Items)), changes: make([]change, 0, len(b.Items)),
		done: make(chan error, 1),
	}
	arena := make([]byte, 0, arenaSize(b))
	for i, item := range b.Items {
		c := change{id: item.ID, version: item.Version, strict: item.Strict, deleted: item.Op == core.OpDelete, result: &req.results[i]}
		if err := checkItem(item); err != nil {
			reject(c.result, err)
			continue
		}
		if !c.deleted {
			doc := b.Document(i)
			if err := a.accept(ln, doc); err != nil {
				reject(c.result, err)
				continue
			}
			start := len(arena)
			arena = appendRow(arena, c.id, c.version, doc)
			c.row = arena[start:len(arena):len(arena)]
			c.document = doc
			c.terms = slices.Clone(ln.terms.found)
		}
		req.changes = append(req.changes, c)
	}
	req.bytes = len(arena)
	return req
}

// arenaSize returns the capacity for the rows of a batch: about their compressed size, and for a single document, which may be
// large, all that compressing it needs.
func arenaSize(b core.Batch) int {
	size := len(b.Payload())
	if len(b.Items) == 1 {
		return maxRowHead + len(b.Items[0].ID) + max(size, s2.MaxEncodedLen(size))
	}
	return size*3/4 + 64*len(b.Items)
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
func (a *alias) accept(ln *writeScratch, doc []byte) error {
	tree := a.tree.Load()
	unknown, err := ln.checker.Check(tree, doc, ln.terms.reset(tree))
	if err != nil {
		return err
	}
	if unknown {
		return a.grow(ln, doc)
	}
	return a.checkObjects(&ln.terms)
}

// checkObjects rejects a document with more objects in nested fields than the index takes.
func (a *alias) checkObjects(found *termSink) error {
	if fault := a.limits.ExceededBy(found.Objects); fault != "" {
		return &document.ParsingError{Type: core.TypeParsing, Reason: fault}
	}
	return nil
}

// grow adds the fields of doc to the mapping, and collects its terms. A document that cannot be stored adds none.
func (a *alias) grow(ln *writeScratch, doc []byte) error {
	a.growth.Lock()
	defer a.growth.Unlock()
	grown, added, err := document.Grow(a.tree.Load(), ln.types, doc)
	if err != nil {
		return err
	}
	if added != nil {
		if fault := a.limits.Exceeded(grown); fault != "" {
			return &document.ParsingError{Type: core.TypeIllegalArgument, Reason: fault}
		}
	}
	if _, err := ln.checker.Check(grown, doc, ln.terms.reset(grown)); err != nil {
		return err
	}
	if err := a.checkObjects(&ln.terms); err != nil {
		return err
	}
	a.tree.Store(grown)
	return nil
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

// scopeFields returns the names of the fields that scopes select by: organizations, repositories, and the records of documents of
// files. Their positions are stored: a new one is appended.
func scopeFields() []string {
	return []string{"studyId", "organization", codeField, "study_id", "analysis.analysisId", "analysis.analysis_id"}
}

const codeField = "repositories.code"

// maxInterned bounds the number of strings cached in a termSink.
const maxInterned = 4096

func (s *termSink) reset(tree *mapping.Field) *termSink {
	s.found, s.Objects = s.found[:0], 0
	if s.tree != tree {
		s.tree = tree
		s.fields = s.fields[:0]
		for _, name := range scopeFields() {
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
	s.buf = appendTerm(s.buf[:0], i, raw)
	found, ok := s.interned[string(s.buf)]
	if !ok {
		found = string(s.buf)
		s.interned[found] = found
	}
	if !slices.Contains(s.found, found) {
		s.found = append(s.found, found)
	}
}

// appendTerm appends the key of a term: the number of its field, then the value's text.
func appendTerm(dst []byte, field int, raw []byte) []byte {
	dst = append(dst, byte('0'+field))
	if bytes.IndexByte(raw, '\\') < 0 {
		return append(dst, raw...)
	}
	return jsontext.AppendUnescaped(dst, raw)
}

// termScoped reports whether a term's key is that of an organization or a record.
func termScoped(key string) bool { return key[0] != '2' }
