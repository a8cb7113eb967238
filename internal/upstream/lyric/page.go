package lyric

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"tutti/internal/core"
	"tutti/internal/upstream"
)

// pageCall is one page as it is asked for: rows [offset, offset+size), which Lyric calls page number, from 1.
type pageCall struct {
	offset, number, size int
}

// newPageCall makes the call for limit rows from offset on, CodeInvalid where Lyric has no page that begins there.
func newPageCall(offset, limit int) (pageCall, error) {
	if offset < 0 || limit < 1 {
		return pageCall{}, core.NewError(core.CodeInvalid, "a page needs a row offset from 0 and a limit from 1")
	}
	if offset%limit != 0 {
		return pageCall{}, core.NewError(core.CodeInvalid, "a page of a tabular repository begins at a multiple of its limit")
	}
	return pageCall{offset: offset, number: offset/limit + 1, size: limit}, nil
}

func (p pageCall) query() string {
	return "view=compound&page=" + strconv.Itoa(p.number) + "&pageSize=" + strconv.Itoa(p.size)
}

// Page reads limit rows of an organization's records from row offset on, which must be a multiple of limit, and calls
// each for every record in order; the Record's Body is valid only until each returns. An error of each ends the page
// and is returned as it is. Others are *core.Error: CodeOverloaded, CodeUnavailable (also for a page cut short, which
// may come after some records), CodeUpstream (ErrNoCategory among them, and a page of another number or size than was
// asked for), and CodeInvalid for what cannot be asked for.
//
// An organization without data, one that does not exist and a page behind the end are one answer of Lyric's: they give
// no error, and a PageInfo that is all zero, also where the pages before said another Total. Records that are not
// valid count as rows and are given too.
func (c *Client) Page(ctx context.Context, organization string, offset, limit int, each func(core.Record) error) (core.PageInfo, error) {
	call, err := newPageCall(offset, limit)
	if err != nil {
		return core.PageInfo{}, err
	}
	answer, err := c.calls.Get(ctx, call.query(), "data", "category", c.category, "organization", organization)
	if err != nil {
		if saysNoData(err) {
			return core.PageInfo{}, nil
		}
		return core.PageInfo{}, ownWords(err)
	}
	defer answer.Close()
	scanner := c.scanner()
	defer c.scanners.Put(scanner)
	reader := c.reader()
	var refused error
	envelope, err := scanner.Page(answer, func(item upstream.Item) error {
		record, err := reader.read(item)
		if err != nil {
			return err
		}
		refused = each(record)
		return refused
	})
	if refused != nil {
		return core.PageInfo{Rows: max(envelope.Rows, 0)}, refused
	}
	var info core.PageInfo
	if err == nil {
		info, err = call.info(envelope)
	}
	if err != nil {
		answer.Fail()
		return core.PageInfo{Rows: max(envelope.Rows, 0)}, err
	}
	return info, nil
}

// info reads what a page says of itself, and holds it against what was asked for and the rows that came. Lyric itself
// takes a pageSize of any size and says it back. A server or a gateway that caps it would shift every page behind the
// first, and rows would be skipped: that is an error.
func (p pageCall) info(envelope upstream.Envelope) (core.PageInfo, error) {
	var said struct {
		CurrentPage  *int `json:"currentPage"`
		PageSize     *int `json:"pageSize"`
		TotalRecords *int `json:"totalRecords"`
	}
	err := json.Unmarshal(envelope.Values[0], &said)
	if err != nil || said.CurrentPage == nil || said.PageSize == nil || said.TotalRecords == nil || *said.TotalRecords < 0 {
		return core.PageInfo{}, wrongShape("page")
	}
	total := *said.TotalRecords
	switch {
	case *said.PageSize != p.size:
		return core.PageInfo{}, &core.Error{
			Code:    core.CodeUpstream,
			Message: fmt.Sprintf("the upstream gives pages of %d records where %d were asked for", *said.PageSize, p.size),
			Hint:    "set the repository's pageSize to what its server and the gateways before it allow",
		}
	case *said.CurrentPage != p.number:
		return core.PageInfo{}, core.NewError(core.CodeUpstream,
			fmt.Sprintf("the upstream answered with page %d where page %d was asked for", *said.CurrentPage, p.number))
	case envelope.Rows > p.size:
		return core.PageInfo{}, core.NewError(core.CodeUpstream,
			fmt.Sprintf("the upstream's page holds %d records where %d were asked for", envelope.Rows, p.size))
	}
	// Lyric counts after it has read the rows, so one that was added in between looks like one that is missing: the page
	// is read again. One that was removed in between cannot be told here.
	if due := min(p.size, total-p.offset); envelope.Rows < due {
		return core.PageInfo{}, core.WrapError(core.CodeUnavailable, "the upstream's page was cut short",
			fmt.Errorf("%w: %d rows of %d", upstream.ErrCut, envelope.Rows, due))
	}
	return core.PageInfo{Rows: envelope.Rows, Total: total}, nil
}
