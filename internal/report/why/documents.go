package why

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/base/equality"
	"tutti/internal/base/jsontext"
	"tutti/internal/core"
	"tutti/internal/report/recordtrace"
)

// maxCompared is the size of the largest documents that are compared by their values, in bytes.
const maxCompared = 4 << 20

// maxKept is the size of the documents of a trace that are kept, in bytes. Of the others, only hashes are compared.
const maxKept = 32 << 20

// errEnough ends a scan.
var errEnough = errors.New("trace: enough documents")

// body is a document of which only the hash may be kept.
type body struct {
	// raw is the document, nil if it is not kept; hash is that of all its bytes if it is not.
	raw  []byte
	hash string
	// contentHash and contentSize are those of its content.
	contentHash string
	contentSize int
}

// keep returns the body of a document whose bytes are borrowed.
func (c *collection) keep(document []byte) body {
	shown := content(document)
	b := body{contentHash: hashOf(shown), contentSize: len(shown)}
	if c.kept.Add(int64(len(document))) <= maxKept {
		b.raw = bytes.Clone(document)
	} else {
		b.hash = hashOf(document)
	}
	return b
}

// compareBodies compares two documents, or their contents, by their values if both are kept.
func (c *collection) compareBodies(made, stored *body, contents bool) recordtrace.Comparison {
	part := func(b *body) (raw []byte, hash string) {
		switch {
		case b.raw == nil && contents:
			return nil, b.contentHash
		case b.raw == nil:
			return nil, b.hash
		case contents:
			return content(b.raw), b.contentHash
		default:
			return b.raw, hashOf(b.raw)
		}
	}
	one, oneHash := part(made)
	two, twoHash := part(stored)
	switch {
	case oneHash == twoHash:
		return recordtrace.ComparisonEqual
	case one == nil || two == nil:
		return recordtrace.ComparisonUnknown
	default:
		return c.compareContents(one, two)
	}
}

// storedDocument is a document of the index without its source.
type storedDocument struct {
	core.StoredDocument
	body
	state string
	// own is the document or, of an index that is shared, the repository's part of it; owned reports whether it is of the record's
	// organization and repository.
	own   body
	owned bool
}

// documentsOf reads documents.
func (c *collection) documentsOf(ctx context.Context, ids []string) error {
	alias := c.trace.Index.Alias
	read := func(i int, doc core.StoredDocument, whole, own body, owned bool) {
		stored := storedDocument{StoredDocument: doc, body: whole, own: own, owned: owned}
		if path := c.repository.Fields.State; path != "" {
			stored.state = gjson.GetBytes(doc.Source, path).String()
		}
		stored.Source = nil
		c.stored[ids[i]] = stored
	}
	if c.repository.Shared == nil {
		return c.cfg.Index.GetAll(ctx, alias, ids, func(i int, doc core.StoredDocument, found bool) {
			if found {
				read(i, doc, c.keep(doc.Source), body{}, c.owns(doc.Source))
			}
		})
	}
	err := c.repository.Shared.GetAll(ctx, alias, ids, func(i int, doc core.StoredDocument, found bool) {
		if found {
			own := c.keep(doc.Source)
			read(i, doc, own, own, c.owns(doc.Source))
		}
	})
	if err != nil || len(c.stored) == 0 {
		return err
	}
	return c.cfg.Index.GetAll(ctx, alias, ids, func(i int, doc core.StoredDocument, found bool) {
		if own, has := c.stored[ids[i]]; has && found {
			read(i, doc, c.keep(doc.Source), own.own, own.owned)
		}
	})
}

// compare compares the documents of the record with those that the upstream's record becomes.
func (c *collection) compare(ids []string) {
	x := &c.trace.Index
	other := false
	for _, id := range ids {
		stored, found := c.stored[id]
		if found && !stored.owned {
			other, found = true, false
		}
		if document, is := c.document(id, stored, found); is {
			x.Documents = append(x.Documents, document)
		}
	}
	x.Status = recordtrace.StatusAbsent
	switch {
	case slices.ContainsFunc(x.Documents, func(d recordtrace.Document) bool { return d.Stored }):
		x.Status = recordtrace.StatusPresent
	case other:
		x.Status = c.other()
	}
	if c.restricted && len(x.Documents) < maxDocuments { // the others are of other organizations
		x.Truncated = false
	}
	x.Comparison = compareAll(x.Documents)
	if x.Truncated && x.Comparison == recordtrace.ComparisonEqual {
		x.Comparison = recordtrace.ComparisonUnknown
	}
}

// documents returns what reads the repository's documents.
func (c *collection) documents() Index {
	if c.repository.Shared != nil {
		return c.repository.Shared
	}
	return c.cfg.Index
}

// listStored finds the ids of the stored documents of a record that has several, as of the index's last refresh.
func (c *collection) listStored(ctx context.Context) error {
	scope := core.IndexScope{Repository: c.repository.Code, Field: c.repository.Fields.ID, Organization: c.trace.ID}
	err := c.documents().Scan(ctx, c.repository.IndexName, scope, 0, func(id string, _ core.Version) error {
		if len(c.storedIDs) > maxDocuments {
			return errEnough
		}
		c.storedIDs = append(c.storedIDs, id)
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// listed returns the ids of the documents to list: those that the record becomes, then the others that are stored.
func (c *collection) listed() []string {
	ids := slices.Clone(c.ids)
	if c.repository.Split == nil && len(ids) == 0 {
		ids = append(ids, c.trace.ID)
	}
	slices.Sort(c.storedIDs)
	for _, id := range c.storedIDs {
		if !slices.Contains(c.ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) > maxDocuments {
		ids, c.trace.Index.Truncated = ids[:maxDocuments], true
	}
	return ids
}

// owns reports whether a stored document is of the record's organization and repository.
func (c *collection) owns(source []byte) bool {
	return gjson.GetBytes(source, c.repository.Fields.Organization).String() == c.trace.Organization && c.inRepository(source)
}

// inRepository reports whether a stored document is of the repository.
func (c *collection) inRepository(source []byte) bool {
	codes := gjson.GetBytes(source, "repositories.#.code").Array()
	return len(codes) == 0 || slices.ContainsFunc(codes, func(code gjson.Result) bool { return code.String() == c.repository.Code })
}

// document describes one document; false if it is neither stored nor expected.
func (c *collection) document(id string, stored storedDocument, found bool) (recordtrace.Document, bool) {
	made, expected := c.expected[id]
	d := recordtrace.Document{ID: id, Stored: found, Comparison: recordtrace.ComparisonUnknown, Content: recordtrace.ComparisonUnknown}
	if c.known {
		d.Expected = &expected
	}
	if expected {
		d.ExpectedSHA256 = made.contentHash
	}
	if found {
		at := time.Unix(0, int64(stored.Version)).UTC()
		d.Version, d.WrittenFor, d.PhysicalIndex = stored.Version, &at, stored.Index
		d.SHA256, d.Bytes, d.State = stored.contentHash, stored.contentSize, stored.state
	}
	switch {
	case !c.known:
	case found && expected:
		d.Content = c.compareBodies(&made, &stored.body, true)
		switch {
		case c.repository.Shared == nil:
			d.Comparison = c.compareBodies(&made, &stored.body, false)
		case made.raw == nil || stored.own.raw == nil:
		case c.repository.Shared.Same(stored.own.raw, made.raw):
			d.Comparison = recordtrace.ComparisonEqual
		default:
			d.Comparison = recordtrace.ComparisonDiffers
		}
	case found != expected:
		d.Comparison, d.Content = recordtrace.ComparisonDiffers, recordtrace.ComparisonDiffers
	}
	return d, found || expected
}

// content returns a document without the members that tutti adds to a record: the repositories block, and the state of an index that is
// shared. The other bytes are as they are.
func content(document []byte) []byte {
	from := jsontext.Space(document, 0) + 1 // after the brace
	if from > len(document) {
		return document
	}
	kept := append(make([]byte, 0, len(document)), document[:from]...)
	first := true
	jsontext.Members(document, 0, func(name []byte, _ bool, value jsontext.Span) bool {
		if string(name) != "repositories" && string(name) != "_tutti" {
			kept, from, first = append(kept, document[from:value.End]...), value.End, false
			return true
		}
		from = value.End
		if next := jsontext.Space(document, from); first && next < len(document) && document[next] == ',' {
			from = next + 1
		}
		return true
	})
	return append(kept, document[from:]...)
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// compareContents compares two documents by their values, because an engine may store white space and the order of members differently.
func (c *collection) compareContents(made, stored []byte) recordtrace.Comparison {
	switch {
	case bytes.Equal(made, stored):
		return recordtrace.ComparisonEqual
	case max(len(made), len(stored)) > maxCompared, !json.Valid(made), !json.Valid(stored):
		return recordtrace.ComparisonUnknown
	case equality.New(c.repository.Fields.Unordered).Equal(made, stored):
		return recordtrace.ComparisonEqual
	default:
		return recordtrace.ComparisonDiffers
	}
}

// compareAll returns the comparison of all documents of a record, "" without any.
func compareAll(documents []recordtrace.Document) recordtrace.Comparison {
	var all recordtrace.Comparison
	for _, d := range documents {
		switch {
		case d.Comparison == recordtrace.ComparisonDiffers:
			return recordtrace.ComparisonDiffers
		case all == "" || d.Comparison == recordtrace.ComparisonUnknown:
			all = d.Comparison
		}
	}
	return all
}
