package lyric

import (
	"context"

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
// the request; the response contains it. Indexable reports whether the record is valid (with Config.ValidOnly) and of the configured
// entity. Errors are *core.Error: CodeAbsent with ErrRecordAbsent, CodeOverloaded, CodeUnavailable (also for a response that is not a
// record), CodeUpstream (including ErrNoCategory), and CodeInvalid for an id that cannot be requested.
//
// When a category has a central entity, Page lists only records of that entity, but Record returns those of every entity, the others
// in the flat view. Config.Entity excludes them from the index.
func (c *Client) Record(ctx context.Context, _, id string) (core.Record, error) {
	r := upstream.Request{Query: "view=compound", Segments: []string{"data", "category", c.category, "id", id}, Error: recordError}
	reader := c.reader()
	return c.calls.Record(ctx, r, func(item upstream.Item) (core.Record, error) {
		record, err := reader.read(item)
		switch {
		case err != nil:
			return record, err
		case record.ID == "" || record.Organization == "":
			return record, upstream.FormatError("record")
		case record.ID != id:
			return record, core.WrapError(core.CodeUpstream, "the upstream answered with another record", errOtherID)
		default:
			return record, nil
		}
	})
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
		Body: item.Body, TooLarge: item.TooLarge, HasRepositories: item.Detected,
	}, nil
}
