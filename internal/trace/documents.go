package trace

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

	"tutti/internal/core"
	"tutti/internal/equality"
	"tutti/internal/jsontext"
)

// maxCompared is the size of the largest documents that are compared by their values, in bytes.
const maxCompared = 4 << 20

// errEnough ends a scan.
var errEnough = errors.New("trace: enough documents")

// storedDocument is a document of the index.
type storedDocument struct {
	core.StoredDocument
	// own is the document or, of an index that is shared, the repository's part of it.
	own []byte
}

// documentsOf reads documents.
func (c *collection) documentsOf(ctx context.Context, ids []string) error {
	alias := c.trace.Index.Alias
	err := c.documents().GetAll(ctx, alias, ids, func(i int, doc core.StoredDocument, found bool) {
		if found {
			doc.Source = bytes.Clone(doc.Source)
			c.stored[ids[i]] = storedDocument{doc, doc.Source}
		}
	})
	if err != nil || c.repository.Shared == nil || len(c.stored) == 0 {
		return err
	}
	return c.cfg.Index.GetAll(ctx, alias, ids, func(i int, doc core.StoredDocument, found bool) {
		if own, has := c.stored[ids[i]]; has && found {
			own.Source = bytes.Clone(doc.Source)
			c.stored[ids[i]] = own
		}
	})
}

// compare compares the documents of the record with those that the upstream's record becomes.
func (c *collection) compare(ids []string) {
	x := &c.trace.Index
	other := false
	for _, id := range ids {
		stored, found := c.stored[id]
		if found && !c.owns(stored.own) {
			other, found = true, false
		}
		if document, is := c.document(id, stored, found); is {
			x.Documents = append(x.Documents, document)
		}
	}
	x.Status = core.TraceAbsent
	switch {
	case slices.ContainsFunc(x.Documents, func(d core.TraceDocument) bool { return d.Stored }):
		x.Status = core.TracePresent
	case other:
		x.Status = c.other()
	}
	if c.restricted && len(x.Documents) < maxDocuments { // the others are of other organizations
		x.Truncated = false
	}
	x.Comparison = compareAll(x.Documents)
	if x.Truncated && x.Comparison == core.ComparisonEqual {
		x.Comparison = core.ComparisonUnknown
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
func (c *collection) document(id string, stored storedDocument, found bool) (core.TraceDocument, bool) {
	made, expected := c.expected[id]
	d := core.TraceDocument{ID: id, Stored: found, Comparison: core.ComparisonUnknown, Content: core.ComparisonUnknown}
	if c.known {
		d.Expected = &expected
	}
	var storedContent, madeContent []byte
	if expected {
		madeContent = content(made)
		d.ExpectedSHA256 = hashOf(madeContent)
	}
	if found {
		at := time.Unix(0, int64(stored.Version)).UTC()
		d.Version, d.WrittenFor, d.PhysicalIndex = stored.Version, &at, stored.Index
		storedContent = content(stored.Source)
		d.SHA256, d.Bytes = hashOf(storedContent), len(storedContent)
		if path := c.repository.Fields.State; path != "" {
			d.State = gjson.GetBytes(stored.Source, path).String()
		}
	}
	switch {
	case !c.known:
	case found && expected:
		d.Content = c.compareContents(madeContent, storedContent)
		switch {
		case c.repository.Shared == nil:
			d.Comparison = c.compareContents(made, stored.Source)
		case c.repository.Shared.Same(stored.own, made):
			d.Comparison = core.ComparisonEqual
		default:
			d.Comparison = core.ComparisonDiffers
		}
	case found != expected:
		d.Comparison, d.Content = core.ComparisonDiffers, core.ComparisonDiffers
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
func (c *collection) compareContents(made, stored []byte) core.Comparison {
	switch {
	case bytes.Equal(made, stored):
		return core.ComparisonEqual
	case max(len(made), len(stored)) > maxCompared, !json.Valid(made), !json.Valid(stored):
		return core.ComparisonUnknown
	case equality.New(c.repository.Fields.Unordered).Equal(made, stored):
		return core.ComparisonEqual
	default:
		return core.ComparisonDiffers
	}
}

// compareAll returns the comparison of all documents of a record, "" without any.
func compareAll(documents []core.TraceDocument) core.Comparison {
	var all core.Comparison
	for _, d := range documents {
		switch {
		case d.Comparison == core.ComparisonDiffers:
			return core.ComparisonDiffers
		case all == "" || d.Comparison == core.ComparisonUnknown:
			all = d.Comparison
		}
	}
	return all
}
