package song

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tutti/internal/core"
	"tutti/internal/upstream"
)

// maxStudies bounds the response of studies/all, in bytes.
const maxStudies = 16 << 20

// Config configures a Client. Only URL is required.
type Config struct {
	// URL is the Song server's base URL.
	URL string
	// Token is sent as a bearer token; Username and Password as basic auth. Empty: none. Setting both is an error.
	Token              string
	Username, Password string
	// Timeout bounds connecting and receiving the headers together, and then each wait for more of the body, not the time spent in a
	// page's callback. Default 30 s.
	Timeout time.Duration
	// States are the indexed states of analyses. Default PUBLISHED.
	States []string
	// Concurrency is the number of idle connections to keep. Default 4.
	Concurrency int
	// UserAgent is the User-Agent header. Default "tutti".
	UserAgent string
	// MaxRecordBytes bounds an analysis; of a larger one only Record.TooLarge is returned. Default core.DefaultMaxRecordBytes.
	MaxRecordBytes int
	// Memory bounds the bytes of large records; nil means unbounded.
	Memory upstream.Memory
	// Repository is the code of the repository, the label of the Metrics.
	Repository string
	// Metrics may be nil.
	Metrics *upstream.Metrics
	// Transport replaces the client's own connections, for tests.
	Transport http.RoundTripper
}

// Client reads one Song server. It is safe for concurrent use.
type Client struct {
	calls      *upstream.Client
	states     []string
	query      string // analysisStates=…
	newScanner func() *upstream.Scanner
	scanners   sync.Pool // of *upstream.Scanner
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
	if cfg.MaxRecordBytes < 0 {
		return nil, core.NewError(core.CodeInvalid, "the maximum size of a record must not be negative")
	}
	calls, err := upstream.NewClient(upstream.Config{
		URL: cfg.URL, Token: cfg.Token, Username: cfg.Username, Password: cfg.Password,
		Timeout: cfg.Timeout, Concurrency: cfg.Concurrency, UserAgent: cfg.UserAgent,
		Memory: cfg.Memory, Repository: cfg.Repository, Metrics: cfg.Metrics, Transport: cfg.Transport,
	})
	if err != nil {
		return nil, err
	}
	shape := upstream.Format{
		Array:        "analyses",
		Envelope:     []string{"totalAnalyses", "currentTotalAnalyses"},
		Members:      []string{"analysisId", "studyId", "analysisState"},
		DetectMember: upstream.RepositoriesMember,
	}
	return &Client{
		calls: calls, states: states, query: "analysisStates=" + strings.Join(escaped, ","),
		newScanner: func() *upstream.Scanner { return upstream.NewScanner(shape, cfg.MaxRecordBytes) },
	}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.calls.Close() }

// scanner returns a Scanner from the pool; the caller returns it with scanners.Put.
func (c *Client) scanner() *upstream.Scanner {
	if scanner, ok := c.scanners.Get().(*upstream.Scanner); ok {
		return scanner
	}
	return c.newScanner()
}

// Organizations returns the ids of all studies, in the server's order. Errors are *core.Error: CodeUnavailable,
// CodeOverloaded or CodeUpstream.
func (c *Client) Organizations(ctx context.Context) ([]string, error) {
	answer, err := c.calls.Get(ctx, "", "studies", "all")
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	body, err := readLimited(answer, maxStudies)
	if err != nil {
		return nil, err
	}
	var ids []*string
	if err := json.Unmarshal(body, &ids); err != nil || ids == nil {
		answer.MarkFailed()
		return nil, formatError("list of studies")
	}
	studies := make([]string, len(ids))
	for i, id := range ids {
		if id == nil {
			answer.MarkFailed()
			return nil, formatError("list of studies")
		}
		studies[i] = *id
	}
	return studies, nil
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
	query := c.query + "&limit=" + strconv.Itoa(limit) + "&offset=" + strconv.Itoa(offset)
	answer, err := c.calls.Get(ctx, query, "studies", organization, "analysis", "paginated")
	if err != nil {
		return core.PageInfo{}, protocolError(err)
	}
	defer answer.Close()
	scanner := c.scanner()
	defer c.scanners.Put(scanner)
	var reader recordReader
	var refused error
	envelope, err := scanner.Page(answer, func(item upstream.Item) error {
		record := reader.read(item)
		record.Indexable = record.State == "" || slices.Contains(c.states, record.State)
		refused = each(record)
		return refused
	})
	if refused != nil {
		return core.PageInfo{Rows: max(envelope.Rows, 0)}, refused
	}
	var info core.PageInfo
	if err == nil {
		info, err = pageInfo(envelope)
	}
	if err != nil {
		answer.MarkFailed()
		return core.PageInfo{Rows: max(envelope.Rows, 0)}, err
	}
	return info, nil
}

// pageInfo returns the totals of a page after comparing them with the number of received rows.
func pageInfo(envelope upstream.Envelope) (core.PageInfo, error) {
	total, err := strconv.Atoi(string(envelope.Values[envelopeTotal]))
	if err != nil || total < 0 {
		return core.PageInfo{}, formatError("page")
	}
	if raw := envelope.Values[envelopeSize]; raw != nil {
		size, err := strconv.Atoi(string(raw))
		if err != nil {
			return core.PageInfo{}, formatError("page")
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
		// That path is the path of the list.
		return core.Record{}, core.NewError(core.CodeInvalid, `"paginated" cannot be the id of an analysis`)
	}
	scanner := c.scanner()
	defer c.scanners.Put(scanner)
	answer, item, err := c.calls.Record(ctx, scanner, "", "studies", organization, "analysis", id)
	if err != nil {
		return core.Record{}, protocolError(err)
	}
	defer answer.Close()
	var reader recordReader
	record := reader.read(item)
	// An analysis without a state would count as removed from the index, so only a complete analysis is accepted.
	if record.ID == "" || record.Organization == "" || record.State == "" {
		answer.MarkFailed()
		return core.Record{}, formatError("analysis")
	}
	if record.ID != id {
		return core.Record{}, core.WrapError(core.CodeUpstream, "the upstream answered with another analysis", errOtherID)
	}
	record.Indexable = slices.Contains(c.states, record.State)
	record.Release = answer.DetachMemory()
	return record, nil
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
		ID: string(item.Values[memberID]), Organization: r.study, State: r.state, Body: item.Body,
		TooLarge: item.TooLarge, HasRepositories: item.Detected,
	}
}

// setString sets kept to text, without allocating when it is equal.
func setString(kept *string, text []byte) {
	if *kept != string(text) {
		*kept = string(text)
	}
}
