package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
	"tutti/internal/index/elastic/flavour"
)

const (
	// pitKeepAlive is the maximum time between two requests for a point in time.
	pitKeepAlive = "5m"
	// closeTimeout limits closing a point in time, which also expires by itself.
	closeTimeout = 5 * time.Second
)

// PIT is a point in time of an alias: its documents as they were when it was opened, which pages read one after the other. It must be
// closed. It is not safe for concurrent use.
type PIT struct {
	client *Client
	engine flavour.Engine
	// id changes with the responses.
	id string
	// after are the sort values of the last document read, nil before the first page. returned are the documents with exactly these
	// values, where they are not unique.
	after    []byte
	returned map[Location]struct{}
	// total is the number of documents that match, from the first page; read counts those of all pages.
	total, read int64
}

// Location is the index and the id of a document.
type Location struct{ Index, ID string }

// OpenPIT opens a point in time of alias.
func (c *Client) OpenPIT(ctx context.Context, alias string) (*PIT, error) {
	engine, err := c.Engine(ctx)
	if err != nil {
		return nil, err
	}
	open := request{method: http.MethodPost, path: "/" + alias + engine.PointInTime.OpenPath, query: "keep_alive=" + pitKeepAlive}
	var answer map[string]json.RawMessage
	if err := c.Fetch(ctx, open, &answer); err != nil {
		return nil, err
	}
	id := jsontext.Unquote(answer[engine.PointInTime.OpenMember])
	if id == "" {
		return nil, UnexpectedResponse()
	}
	return &PIT{client: c, engine: engine, id: id}, nil
}

// Close closes the point in time, even if ctx has ended. If that fails, it expires by itself.
func (p *PIT) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	body := fmt.Appendf(nil, p.engine.PointInTime.CloseBody, jsontext.AppendRawString(nil, p.id))
	if _, err := p.client.Do(ctx, request{method: http.MethodDelete, path: p.engine.PointInTime.ClosePath, body: body}, nil); err != nil {
		p.client.cfg.Logger.Debug("a point in time could not be closed", "err", err)
	}
}

// SetID stores the id of the latest response, "" if it has none.
func (p *PIT) SetID(id string) {
	if id != "" {
		p.id = id
	}
}

// Engine returns the engine. Its Tiebreaker must end every sort of documents.
func (p *PIT) Engine() flavour.Engine { return p.engine }

// Ambiguous reports whether documents may have equal sort values. A page then needs their indices, and some of its documents may have
// been returned before.
func (p *PIT) Ambiguous() bool { return !p.engine.Unique }

// Append appends the members of a search that name the point in time and extend its lifetime.
func (p *PIT) Append(dst []byte) []byte {
	dst = append(dst, `,"pit":{"id":`...)
	dst = jsontext.AppendRawString(dst, p.id)
	return append(dst, `,"keep_alive":"`+pitKeepAlive+`"}`...)
}

// AppendPage appends what Append does, and the members of the next page of size documents that were not returned before. The first page
// also counts all of them.
func (p *PIT) AppendPage(dst []byte, size int) []byte {
	dst = fmt.Appendf(p.Append(dst), `,"size":%d,"track_total_hits":%t`, p.PageSize(size), p.after == nil)
	switch {
	case p.after == nil:
		return dst
	case p.engine.Unique:
		return fmt.Appendf(dst, `,"search_after":%s`, p.after)
	}
	// Other documents may have the same values: the page begins with those returned before.
	at := bytes.LastIndexAny(p.after, ",[") + 1
	number, _ := strconv.ParseInt(string(p.after[at:len(p.after)-1]), 10, 64) // Advance has checked it
	return fmt.Appendf(dst, `,"search_after":%s%d]`, p.after[:at], number-1)
}

// SetTotal stores the number of documents in the response to a first page; has is false if the response lacks it. Later pages have none.
func (p *PIT) SetTotal(total int64, has bool) error {
	if p.after != nil {
		return nil
	}
	if p.total = total; !has {
		return UnexpectedResponse()
	}
	return nil
}

// Complete returns an error if the pages had more or fewer documents than the first page counted: an engine may lose documents without
// an error, as OpenSearch 3.8 does when it pages by a scaled_float.
func (p *PIT) Complete() error {
	if p.read == p.total {
		return nil
	}
	return core.NewError(core.CodeUnavailable, fmt.Sprintf("the index returned %d of %d documents; the result is not complete", p.read, p.total))
}

// PageSize returns the number of documents in a full page that has size documents not returned before.
func (p *PIT) PageSize(size int) int { return size + len(p.returned) }

// Returned reports whether a previous page had the document.
func (p *PIT) Returned(at Location) bool {
	_, returned := p.returned[at]
	return returned
}

// Advance ends a page of documents, given by the raw sort values of the last one and, where they are Ambiguous, by the location and the
// Tiebreaker's value of each. A page without documents changes nothing.
func (p *PIT) Advance(last []byte, documents int, document func(i int) (Location, []byte)) error {
	if documents == 0 {
		return nil
	}
	if p.engine.Unique {
		if p.after = bytes.Clone(last); last == nil {
			return UnexpectedResponse()
		}
		p.read += int64(documents)
		return nil
	}
	_, tie := document(documents - 1)
	if _, err := strconv.ParseInt(string(tie), 10, 64); err != nil || !bytes.HasSuffix(last, append(bytes.Clone(tie), ']')) {
		return UnexpectedResponse()
	}
	for i := range documents {
		if at, _ := document(i); !p.Returned(at) {
			p.read++
		}
	}
	if p.returned == nil || !bytes.Equal(last, p.after) {
		p.returned = make(map[Location]struct{})
	}
	p.after = bytes.Clone(last)
	for i := range documents {
		if at, number := document(i); bytes.Equal(number, tie) { // at most one of each shard
			p.returned[at] = struct{}{}
		}
	}
	return nil
}

// request is a request that differs between engines, or between their versions, so that esapi has no type for it.
type request struct {
	method, path, query string
	body                []byte
	// read reports that the request may be sent again.
	read bool
}

// Do sends the request.
func (r request) Do(ctx context.Context, transport esapi.Transport) (*esapi.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, "/", bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	req.URL.Path, req.URL.RawQuery = r.path, r.query
	if len(r.body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := transport.Perform(req) //nolint:bodyclose // the caller closes it
	if err != nil {
		return nil, err
	}
	return &esapi.Response{StatusCode: res.StatusCode, Header: res.Header, Body: res.Body}, nil
}
