package lyric

import (
	"context"

	"tutti/internal/core"
	"tutti/internal/upstream"
)

// Members of a record, in the order of the Shape in New.
const (
	memberID = iota
	memberOrganization
	memberEntity
)

// Record reads one record of the category by its systemId. Lyric keeps these apart over all organizations, so the
// organization is not part of the question: the Record's own is in the answer. Indexable says whether it is valid, or
// whether that matters, and of the entity that is asked for. Errors are *core.Error: CodeAbsent with ErrRecordAbsent, CodeOverloaded, CodeUnavailable (also
// for an answer that is no record), CodeUpstream (ErrNoCategory among them), and CodeInvalid for an id that cannot be
// asked for.
//
// Where a category has a central entity, Page lists records of that entity alone, but Lyric answers for a record of
// every entity here: one of another comes in the flat view. Config.Entity keeps those out.
func (c *Client) Record(ctx context.Context, _, id string) (core.Record, error) {
	scanner := c.scanner()
	defer c.scanners.Put(scanner)
	answer, item, err := c.calls.Record(ctx, scanner, "view=compound", "data", "category", c.category, "id", id)
	if err != nil {
		return core.Record{}, recordWords(err)
	}
	defer answer.Close()
	reader := c.reader()
	record, err := reader.read(item)
	if err == nil && (record.ID == "" || record.Organization == "") {
		err = wrongShape("record")
	}
	if err != nil {
		answer.Fail()
		return core.Record{}, err
	}
	if record.ID != id {
		return core.Record{}, core.WrapError(core.CodeUpstream, "the upstream answered with another record", errOtherID)
	}
	record.Release = answer.Keep()
	return record, nil
}

// recordReader makes Records of items. It keeps the last organization, which is the same for all of a page.
type recordReader struct {
	validOnly    bool
	entity       string
	organization string
}

func (c *Client) reader() recordReader { return recordReader{validOnly: c.validOnly, entity: c.entity} }

// read makes the Record of an item. What does not say whether it is valid is no record of Lyric's: taken for an invalid
// one it would leave the index.
func (r *recordReader) read(item upstream.Item) (core.Record, error) {
	if item.Flag == upstream.TruthNone {
		return core.Record{}, wrongShape("record")
	}
	if r.organization != string(item.Values[memberOrganization]) {
		r.organization = string(item.Values[memberOrganization])
	}
	indexable := (item.Flag == upstream.TruthTrue || !r.validOnly) && (r.entity == "" || r.entity == string(item.Values[memberEntity]))
	return core.Record{
		ID: string(item.Values[memberID]), Organization: r.organization, Indexable: indexable,
		Body: item.Body, TooLarge: item.TooLarge, HasRepositories: item.Noticed,
	}, nil
}
