package song

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/upstream"
)

// Config configures a Client. Only URL is required.
type Config struct {
	upstream.Config
	// States are the indexed states of analyses. Default PUBLISHED.
	States []string
}

// Client reads one Song server. It is safe for concurrent use.
type Client struct {
	calls  *upstream.Client
	states []string
	query  string // analysisStates=…
	// declaring are the versions of analysis types that the last successful Declared has read, nil for none.
	declaring atomic.Pointer[map[datamodel.AnalysisTypeRef]struct{}]
}

// Indexes of the members of a page and of an analysis in the Format of New.
const (
	envelopeTotal = iota
	envelopeSize
)

const (
	memberID = iota
	memberStudy
	memberState
)

// New returns a Client without connecting. CodeInvalid for a bad Config.
func New(cfg Config) (*Client, error) {
	states := slices.Clone(cfg.States)
	if len(states) == 0 {
		states = []string{"PUBLISHED"}
	}
	escaped := make([]string, len(states))
	for i, state := range states {
		if state == "" || strings.Contains(state, ",") {
			return nil, core.NewError(core.CodeInvalid, "a state of analyses must not be empty or contain a comma")
		}
		escaped[i] = url.QueryEscape(state)
	}
	cfg.Format = upstream.Format{
		Array:        "analyses",
		Envelope:     []string{"totalAnalyses", "currentTotalAnalyses"},
		Members:      []string{"analysisId", "studyId", "analysisState"},
		DetectMember: upstream.RepositoriesMember,
	}
	calls, err := upstream.NewClient(cfg.Config)
	if err != nil {
		return nil, err
	}
	return &Client{calls: calls, states: states, query: "analysisStates=" + strings.Join(escaped, ",")}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.calls.Close() }

// Organizations returns the ids of all studies, in the server's order. Errors are *core.Error: CodeUnavailable,
// CodeOverloaded or CodeUpstream.
func (c *Client) Organizations(ctx context.Context) ([]string, error) {
	r := upstream.Request{Segments: []string{"studies", "all"}}
	return c.calls.Names(ctx, r, "list of studies", func(document []byte) (ids []*string, err error) {
		err = json.Unmarshal(document, &ids)
		return ids, err
	})
}

// Page reads limit rows of a study's analyses from row offset on, and calls each for every record in order; the Record's Body is
// valid only until each returns. An error of each ends the page and is returned unchanged. Others are *core.Error: CodeAbsent with
// ErrStudyAbsent, CodeOverloaded, CodeUnavailable (also for a truncated page, which may come after some records), CodeUpstream, and
// CodeInvalid for an organization that is not a path segment. A record without a state is Indexable here: the request is for
// indexed states only.
func (c *Client) Page(ctx context.Context, organization string, offset, limit int, each func(core.Record) error) (core.PageInfo, error) {
	if offset < 0 || limit < 1 {
		return core.PageInfo{}, core.NewError(core.CodeInvalid, "the offset of a page must be at least 0 and its limit at least 1")
	}
	r := upstream.Request{
		Query:    c.query + "&limit=" + strconv.Itoa(limit) + "&offset=" + strconv.Itoa(offset),
		Segments: []string{"studies", organization, "analysis", "paginated"}, Error: protocolError,
	}
	var reader recordReader
	return c.calls.Page(ctx, r, func(item upstream.Item) (core.Record, error) {
		record := reader.read(item)
		record.Indexable = record.State == "" || slices.Contains(c.states, record.State)
		return record, nil
	}, pageInfo, each)
}

// pageInfo returns the totals of a page after comparing them with the number of received rows.
func pageInfo(envelope upstream.Envelope) (core.PageInfo, error) {
	total, err := strconv.Atoi(string(envelope.Values[envelopeTotal]))
	if err != nil || total < 0 {
		return core.PageInfo{}, upstream.FormatError("page")
	}
	if raw := envelope.Values[envelopeSize]; raw != nil {
		size, err := strconv.Atoi(string(raw))
		if err != nil {
			return core.PageInfo{}, upstream.FormatError("page")
		}
		if size != envelope.Rows {
			return core.PageInfo{}, core.WrapError(core.CodeUnavailable, "the upstream's page was cut short",
				fmt.Errorf("%w: %d rows of %d", upstream.ErrTruncated, envelope.Rows, size))
		}
	}
	return core.PageInfo{Rows: envelope.Rows, Total: total}, nil
}

// Record reads one analysis in any state; Indexable reports whether the state is configured. Errors are *core.Error: CodeAbsent with
// ErrAnalysisAbsent or ErrStudyAbsent, CodeOverloaded, CodeUnavailable (also for a response that is not an analysis), CodeUpstream
// (including ErrOtherStudy), and CodeInvalid for an id that cannot be requested.
func (c *Client) Record(ctx context.Context, organization, id string) (core.Record, error) {
	if id == "paginated" {
		// With that id the path would be that of the list.
		return core.Record{}, core.NewError(core.CodeInvalid, `"paginated" cannot be the id of an analysis`)
	}
	r := upstream.Request{Segments: []string{"studies", organization, "analysis", id}, Error: protocolError}
	return c.calls.Record(ctx, r, func(item upstream.Item) (core.Record, error) {
		record := new(recordReader).read(item)
		// An analysis without a state would count as removed from the index, so only a complete analysis is accepted.
		if record.ID == "" || record.Organization == "" || record.State == "" {
			return record, upstream.FormatError("analysis")
		}
		if record.ID != id {
			return record, core.WrapError(core.CodeUpstream, "the upstream answered with another analysis", errOtherID)
		}
		record.Indexable = slices.Contains(c.states, record.State)
		return record, nil
	})
}

// errOtherID: the response contains another analysis than the requested one.
var errOtherID = errors.New("song: analysis of another id")

// recordReader converts Items to Records. It reuses the last study and state, which are the same for most of a page.
type recordReader struct {
	study, state string
}

func (r *recordReader) read(item upstream.Item) core.Record {
	setString(&r.study, item.Values[memberStudy])
	setString(&r.state, item.Values[memberState])
	return core.Record{
		ID: string(item.Values[memberID]), Organization: r.study, State: r.state, Body: item.Body, Plain: item.Plain, Shape: item.Shape,
		TooLarge: item.TooLarge, HasRepositories: item.Detected,
	}
}

// setString sets kept to text, without allocating if they are already equal.
func setString(kept *string, text []byte) {
	if *kept != string(text) {
		*kept = string(text)
	}
}
