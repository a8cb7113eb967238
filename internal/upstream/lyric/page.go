package lyric

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"tutti/internal/core"
	"tutti/internal/upstream"
)

// pageRequest is a request for the rows [offset, offset+size), which is Lyric's page number, counted from 1.
type pageRequest struct {
	offset, number, size int
}

// newPageRequest returns the request for limit rows from offset on, CodeInvalid when no page of Lyric starts there.
func newPageRequest(offset, limit int) (pageRequest, error) {
	if offset < 0 || limit < 1 {
		return pageRequest{}, core.NewError(core.CodeInvalid, "the offset of a page must be at least 0 and its limit at least 1")
	}
	if offset%limit != 0 {
		return pageRequest{}, core.NewError(core.CodeInvalid, "the offset of a tabular repository's page must be a multiple of its limit")
	}
	return pageRequest{offset: offset, number: offset/limit + 1, size: limit}, nil
}

func (p pageRequest) query() string {
	return "view=compound&page=" + strconv.Itoa(p.number) + "&pageSize=" + strconv.Itoa(p.size)
}

// Page reads limit rows of an organization's records from row offset on, which must be a multiple of limit, and calls each for every
// record in order; the Record's Body is valid only until each returns. An error of each ends the page and is returned unchanged.
// Others are *core.Error: CodeOverloaded, CodeUnavailable (also for a truncated page, which may come after some records),
// CodeUpstream (including ErrNoCategory, and a page with another number or size than requested), and CodeInvalid for a page that
// cannot be requested.
//
// Lyric does not distinguish an organization without data, an unknown one and a page past the end: all return no error and a zero
// PageInfo, even when earlier pages had another Total. Invalid records count as rows and are passed to each too.
func (c *Client) Page(ctx context.Context, organization string, offset, limit int, each func(core.Record) error) (core.PageInfo, error) {
	call, err := newPageRequest(offset, limit)
	if err != nil {
		return core.PageInfo{}, err
	}
	r := upstream.Request{
		Query: call.query(), Segments: []string{"data", "category", c.category, "organization", organization}, Error: pageError,
	}
	reader := c.reader()
	info, err := c.calls.Page(ctx, r, reader.read, call.info, each)
	if errors.Is(err, errNoRows) {
		return core.PageInfo{}, nil
	}
	return info, err
}

// info returns the totals of a page after comparing them with the request and the number of received rows. Lyric accepts a pageSize
// of any size and returns it. A server or gateway that caps it would shift all later pages, and rows would be skipped: that is an
// error.
func (p pageRequest) info(envelope upstream.Envelope) (core.PageInfo, error) {
	var said struct {
		CurrentPage  *int `json:"currentPage"`
		PageSize     *int `json:"pageSize"`
		TotalRecords *int `json:"totalRecords"`
	}
	err := json.Unmarshal(envelope.Values[0], &said)
	if err != nil || said.CurrentPage == nil || said.PageSize == nil || said.TotalRecords == nil || *said.TotalRecords < 0 {
		return core.PageInfo{}, upstream.FormatError("page")
	}
	total := *said.TotalRecords
	switch {
	case *said.PageSize != p.size:
		err := &core.Error{
			Code:    core.CodeUpstream,
			Message: fmt.Sprintf("the upstream returned a page of %d records instead of %d", *said.PageSize, p.size),
			Hint:    "set the repository's pageSize to what its server and the gateways in front of it allow",
		}
		if *said.PageSize < p.size {
			err.Err = core.ErrAskedTooMuch
		}
		return core.PageInfo{}, err
	case *said.CurrentPage != p.number:
		return core.PageInfo{}, core.NewError(core.CodeUpstream,
			fmt.Sprintf("the upstream returned page %d instead of page %d", *said.CurrentPage, p.number))
	case envelope.Rows > p.size:
		return core.PageInfo{}, core.NewError(core.CodeUpstream,
			fmt.Sprintf("the upstream's page contains %d records instead of at most %d", envelope.Rows, p.size))
	}
	// Lyric counts after it has read the rows, so a row added in between looks like a missing one: the page is read again. A row
	// removed in between is detected by the next page, which follows each full one.
	if due := min(p.size, total-p.offset); envelope.Rows < due {
		return core.PageInfo{}, core.WrapError(core.CodeUnavailable, "the upstream's page was cut short",
			fmt.Errorf("%w: %d rows of %d", upstream.ErrTruncated, envelope.Rows, due))
	}
	return core.PageInfo{Rows: envelope.Rows, Total: total}, nil
}
