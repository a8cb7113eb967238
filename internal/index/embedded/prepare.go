package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/klauspost/compress/s2"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

// Encode appends the document alone: the batch's items say the rest.
func (x *Index) Encode(dst []byte, w core.Write) (out []byte, docStart, docEnd int) {
	docStart = len(dst)
	if w.Op == core.OpIndex {
		dst = append(dst, w.Document...)
	}
	return dst, docStart, len(dst)
}

// change is one write that may be applied: the document is checked and packed, the version is not yet compared.
type change struct {
	id      string
	version core.Version
	strict  bool
	deleted bool
	// row is the encoded row (appendRow) without its number, document what is in it.
	row, document []byte
	// terms are the field and value pairs that scopes select by.
	terms []string
	// result is where the outcome goes.
	result *core.Result
}

// lane is what one Write works with, kept from one to the next: a checker and the collector of terms.
type lane struct {
	checker mapping.Checker
	terms   termSink
}

// prepare turns a batch into changes, and says at once what is rejected. It neither reads nor writes the file.
func (x *Index) prepare(a *alias, b core.Batch) *request {
	ln, _ := x.lanes.Get().(*lane)
	if ln == nil {
		ln = &lane{}
	}
	defer x.lanes.Put(ln)
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

// arenaSize returns the room for the rows of a batch: about what they are once packed, and for one by itself, which may be
// large, all that packing it needs.
func arenaSize(b core.Batch) int {
	size := len(b.Payload())
	if len(b.Items) == 1 {
		return maxRowHead + len(b.Items[0].ID) + max(size, s2.MaxEncodedLen(size))
	}
	return size*3/4 + 64*len(b.Items)
}

// reject notes a document that will never be taken.
func reject(r *core.Result, err error) {
	r.Outcome, r.Type, r.Reason = core.OutcomeRejected, mapping.TypeIllegalArgument, err.Error()
	if parsing, ok := errors.AsType[*mapping.ParsingError](err); ok {
		r.Type = parsing.Type
	}
}

// checkItem holds an item to what Elasticsearch says of ids and external versions.
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
	return &mapping.ParsingError{Type: mapping.TypeIllegalArgument, Reason: reason}
}

// accept checks doc, collecting its terms, and grows the mapping by what doc brings along.
func (a *alias) accept(ln *lane, doc []byte) error {
	tree := a.tree.Load()
	unknown, err := ln.checker.Check(tree, doc, ln.terms.reset(tree))
	if err != nil || !unknown {
		return err
	}
	if tree, err = a.grow(doc); err != nil {
		return err
	}
	_, err = ln.checker.Check(tree, doc, ln.terms.reset(tree))
	return err
}

// grow adds the fields of doc. A document that cannot be taken adds none.
func (a *alias) grow(doc []byte) (*mapping.Field, error) {
	a.growth.Lock()
	defer a.growth.Unlock()
	grown, added, err := mapping.Grow(a.tree.Load(), doc)
	if err != nil || added == nil {
		return grown, err
	}
	if fault := a.limits.exceeded(grown); fault != "" {
		return nil, &mapping.ParsingError{Type: mapping.TypeIllegalArgument, Reason: fault}
	}
	a.tree.Store(grown)
	return grown, nil
}

// maxTermBytes is the longest value that a scope can select by; organizations and codes are far shorter.
const maxTermBytes = 2 * core.MaxIDBytes

// maxTerms is how many values of a document scopes can select by.
const maxTerms = 255

// termSink collects what scopes select by: the record's organization and the codes of its repositories.
type termSink struct {
	tree     *mapping.Field
	fields   [3]*mapping.Field
	found    []string
	buf      []byte
	interned map[string]string
}

// Names of the fields that scopes select by, in the order of termSink.fields; the last is no organization.
func scopeFields() [3]string {
	return [3]string{
		core.Repository{Type: core.TypeSong}.OrganizationField(),
		core.Repository{Type: core.TypeLyric}.OrganizationField(),
		codeField,
	}
}

const codeField = "repositories.code"

// maxInterned bounds the strings that a lane keeps.
const maxInterned = 4096

func (s *termSink) reset(tree *mapping.Field) *termSink {
	s.found = s.found[:0]
	if s.tree != tree {
		s.tree = tree
		for i, name := range scopeFields() {
			s.fields[i] = tree.Lookup(name)
		}
	}
	if s.interned == nil || len(s.interned) > maxInterned {
		s.interned = map[string]string{}
	}
	return s
}

// Enter and Leave are not of interest: a term holds wherever in the document its field stands.
func (s *termSink) Enter(*mapping.Field) {}

// Leave has nothing to do.
func (s *termSink) Leave(*mapping.Field) {}

// Value takes the value when its field is one of a scope's.
func (s *termSink) Value(f *mapping.Field, kind mapping.Kind, raw []byte) {
	i := slices.Index(s.fields[:], f)
	if i < 0 || kind == mapping.KindObject || len(raw) > maxTermBytes || len(s.found) == maxTerms {
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

// appendTerm returns the key of a term: the number of its field, then the value's text.
func appendTerm(dst []byte, field int, raw []byte) []byte {
	dst = append(dst, byte('0'+field))
	if bytes.IndexByte(raw, '\\') < 0 {
		return append(dst, raw...)
	}
	return mapping.Unquote(dst, raw)
}

// termScoped reports whether a term's key is of an organization.
func termScoped(key string) bool { return key[0] != '2' }
