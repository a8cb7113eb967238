package lyric

import (
	"context"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/upstream"
)

// Indexes of the members of a record in the Format of New.
const (
	memberID = iota
	memberOrganization
	memberEntity
)

// Record reads one record of the category by its systemId. Ids are unique over all organizations, so the organization is not part of
// the request; the response contains it. Indexable reports whether the record is valid (with Config.ValidOnly) and of an entity that has
// documents. Errors are *core.Error: CodeAbsent with ErrRecordAbsent, CodeOverloaded, CodeUnavailable (also for a response that is not a
// record), CodeUpstream (including ErrNoCategory), and CodeInvalid for an id that cannot be requested.
//
// When a category has a central entity, Page lists only records of that entity, but Record returns those of every entity, the others
// in the flat view and as a core.Part. While the list is empty, a record of any entity is one.
func (c *Client) Record(ctx context.Context, _, id string) (core.Record, error) {
	record, entity, err := c.record(ctx, id)
	if err != nil {
		return record, err
	}
	central, listed := c.central.known(entity)
	if !listed {
		// A record must not hold memory while another call may wait for some.
		if record.Release != nil {
			record.Release()
		}
		if central, listed, err = c.centralOf(ctx, entity); err == nil {
			record, entity, err = c.record(ctx, id)
		}
		if err != nil {
			return core.Record{}, err
		}
	}
	switch {
	case !listed:
		record.Reason = "is of entity " + entity + ", and the category lists no record yet"
	case central != "" && central != entity:
		record.Reason = "is of entity " + entity + ", and only records of entity " + central + " have documents"
	case !record.Indexable:
		record.Reason = "is not valid, and lyric.validOnly is true"
	}
	if !listed || central != "" && central != entity {
		record.Indexable, record.Part = false, core.NewPart(entity, []byte(gjson.GetBytes(record.Body, "data").Raw))
	}
	return record, nil
}

// record reads one record, whatever its entity is.
func (c *Client) record(ctx context.Context, id string) (record core.Record, entity string, err error) {
	r := upstream.Request{Query: "view=compound", Segments: []string{"data", "category", c.category, "id", id}, Error: recordError}
	reader := c.reader()
	record, err = c.calls.Record(ctx, r, func(item upstream.Item) (core.Record, error) {
		record, err := reader.read(item)
		switch {
		case err != nil:
			return record, err
		case record.ID == "" || record.Organization == "":
			return record, upstream.FormatError("record")
		case record.ID != id:
			return record, core.WrapError(core.CodeUpstream, "the upstream answered with another record", errOtherID)
		}
		entity = string(item.Values[memberEntity])
		return record, nil
	})
	return record, entity, err
}

// recordReader converts Items to Records. It reuses the last organization, which is the same for all of a page.
type recordReader struct {
	validOnly    bool
	entity       string
	organization string
}

func (c *Client) reader() recordReader { return recordReader{validOnly: c.validOnly, entity: c.entity} }

// read returns the Record of an item. An item without isValid is an error: treated as an invalid record, it would be removed from the
// index.
func (r *recordReader) read(item upstream.Item) (core.Record, error) {
	if item.Bool == upstream.BoolMissing {
		return core.Record{}, upstream.FormatError("record")
	}
	if r.organization != string(item.Values[memberOrganization]) {
		r.organization = string(item.Values[memberOrganization])
	}
	indexable := (item.Bool == upstream.BoolTrue || !r.validOnly) && (r.entity == "" || r.entity == string(item.Values[memberEntity]))
	return core.Record{
		ID: string(item.Values[memberID]), Organization: r.organization, Indexable: indexable,
		Body: item.Body, Plain: item.Plain, Shape: item.Shape, TooLarge: item.TooLarge, HasRepositories: item.Detected,
	}, nil
}
