package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
)

// maxCompared is the size of the largest documents that are compared by their values, in bytes.
const maxCompared = 4 << 20

// errEnough ends a scan.
var errEnough = errors.New("trace: enough documents")

// index reads the documents of the record and compares them with those that the upstream's record becomes.
func (c *collection) index(ctx context.Context) error {
	x := &c.trace.Index
	x.Documents = []core.TraceDocument{}
	if err := c.listStored(ctx); err != nil {
		return err
	}
	other := false
	for _, id := range c.listed() {
		stored, found, err := c.documents().Get(ctx, x.Alias, id)
		if err != nil {
			x.Documents = []core.TraceDocument{}
			return err
		}
		if found && !c.owns(stored.Source) {
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
	x.Comparison = compareAll(x.Documents)
	if x.Truncated && x.Comparison == core.ComparisonEqual {
		x.Comparison = core.ComparisonUnknown
	}
	return nil
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
	if c.repository.Split == nil {
		return nil
	}
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
	if gjson.GetBytes(source, c.repository.Fields.Organization).String() != c.trace.Organization {
		return false
	}
	codes := gjson.GetBytes(source, "repositories.#.code").Array()
	return len(codes) == 0 || slices.ContainsFunc(codes, func(code gjson.Result) bool { return code.String() == c.repository.Code })
}

// document describes one document; false if it is neither stored nor expected.
func (c *collection) document(id string, stored core.StoredDocument, found bool) (core.TraceDocument, bool) {
	made, expected := c.expected[id]
	d := core.TraceDocument{ID: id, Stored: found, Comparison: core.ComparisonUnknown}
	if c.known {
		d.Expected = &expected
	}
	if found {
		at := time.Unix(0, int64(stored.Version)).UTC()
		d.Version, d.WrittenFor, d.PhysicalIndex = stored.Version, &at, stored.Index
	}
	switch {
	case !c.known:
	case found && expected && c.repository.Shared != nil:
		d.Comparison = core.ComparisonDiffers
		if c.repository.Shared.Same(stored.Source, made) {
			d.Comparison = core.ComparisonEqual
		}
	case found && expected:
		d.Comparison = compare(made, stored.Source)
	case found != expected:
		d.Comparison = core.ComparisonDiffers
	}
	return d, found || expected
}

// compare compares two documents by their values, because an engine may store white space and the order of members differently.
func compare(made, stored []byte) core.Comparison {
	if bytes.Equal(made, stored) {
		return core.ComparisonEqual
	}
	if max(len(made), len(stored)) > maxCompared {
		return core.ComparisonUnknown
	}
	a, errA := decode(made)
	b, errB := decode(stored)
	switch {
	case errA != nil || errB != nil:
		return core.ComparisonUnknown
	case reflect.DeepEqual(a, b):
		return core.ComparisonEqual
	default:
		return core.ComparisonDiffers
	}
}

// decode decodes a document, with its numbers as they are written.
func decode(document []byte) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	err = d.Decode(&value)
	return value, err
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
