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

// maxStudies bounds the answer of studies/all, in bytes.
const maxStudies = 16 << 20

// Config configures a Client. URL alone is required.
type Config struct {
	// URL is the Song server's base URL.
	URL string
	// Token is sent as a bearer token; Username and Password as basic auth. Empty: none. Both at once are refused.
	Token              string
	Username, Password string
	// Timeout bounds connecting and the headers together, and then each wait for more of the body. Time that a page's
	// callback takes does not count. Default 30 s.
	Timeout time.Duration
	// States are the states of analyses that belong into the index. Default PUBLISHED.
	States []string
	// Concurrency is the number of idle connections that are kept. Default 4.
	Concurrency int
	// UserAgent is the User-Agent header. Default "tutti".
	UserAgent string
	// MaxRecordBytes is the size of the largest analysis that is held; of a larger one only Record.TooLarge is known. Default
	// core.DefaultMaxRecordBytes.
	MaxRecordBytes int
	// Memory bounds the bytes of large records; nil for no bound.
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

// Members of a page and of an analysis, in the order of the Shape in New.
const (
	envelopeTotal = iota
	envelopeSize
)

const (
	memberID = iota
	memberStudy
	memberState
)

// New makes a Client. A fault of cfg is CodeInvalid. Nothing is dialled.
func New(cfg Config) (*Client, error) {
	states := slices.Clone(cfg.States)
	if len(states) == 0 {
		states = []string{"PUBLISHED"}
	}
	escaped := make([]string, len(states))
	for i, state := range states {
		if state == "" || strings.Contains(state, ",") {
			return nil, core.NewError(core.CodeInvalid, "a state of analyses must not be empty or hold a comma")
		}
		escaped[i] = url.QueryEscape(state)
	}
	if cfg.MaxRecordBytes < 0 {
		return nil, core.NewError(core.CodeInvalid, "the largest record's size must not be negative")
	}
	calls, err := upstream.NewClient(upstream.Config{
		URL: cfg.URL, Token: cfg.Token, Username: cfg.Username, Password: cfg.Password,
		Timeout: cfg.Timeout, Concurrency: cfg.Concurrency, UserAgent: cfg.UserAgent,
		Memory: cfg.Memory, Repository: cfg.Repository, Metrics: cfg.Metrics, Transport: cfg.Transport,
	})
	if err != nil {
		return nil, err
	}
	shape := upstream.Shape{
		Array:    "analyses",
		Envelope: []string{"totalAnalyses", "currentTotalAnalyses"},
		Members:  []string{"analysisId", "studyId", "analysisState"},
		Notice:   upstream.RepositoriesMember,
	}
	return &Client{
		calls: calls, states: states, query: "analysisStates=" + strings.Join(escaped, ","),
		newScanner: func() *upstream.Scanner { return upstream.NewScanner(shape, cfg.MaxRecordBytes) },
	}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.calls.Close() }

// scanner takes a Scanner out of the pool; it goes back with scanners.Put.
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
	body, err := limited(answer, maxStudies)
	if err != nil {
		return nil, err
	}
	var ids []*string
	if err := json.Unmarshal(body, &ids); err != nil || ids == nil {
		answer.Fail()
		return nil, wrongShape("list of studies")
	}
	studies := make([]string, len(ids))
	for i, id := range ids {
		if id == nil {
			answer.Fail()
			return nil, wrongShape("list of studies")
		}
		studies[i] = *id
	}
	return studies, nil
}

// Page reads limit rows of a study's analyses from row offset on, and calls each for every record in order; the
// Record's Body is valid only until each returns. An error of each ends the page and is returned as it is. Others are
// *core.Error: CodeAbsent with ErrStudyAbsent, CodeOverloaded, CodeUnavailable (also for a page cut short, which may
// come after some records), CodeUpstream, and CodeInvalid for an organization that is no path segment. A record
// without a state is Indexable here: the page was asked for such states only.
func (c *Client) Page(ctx context.Context, organization string, offset, limit int, each func(core.Record) error) (core.PageInfo, error) {
	if offset < 0 || limit < 1 {
		return core.PageInfo{}, core.NewError(core.CodeInvalid, "a page needs a row offset from 0 and a limit from 1")
	}
	query := c.query + "&limit=" + strconv.Itoa(limit) + "&offset=" + strconv.Itoa(offset)
	answer, err := c.calls.Get(ctx, query, "studies", organization, "analysis", "paginated")
	if err != nil {
		return core.PageInfo{}, ownWords(err)
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
		answer.Fail()
		return core.PageInfo{Rows: max(envelope.Rows, 0)}, err
	}
	return info, nil
}

// pageInfo reads what a page says of itself, and holds it against the rows that came.
func pageInfo(envelope upstream.Envelope) (core.PageInfo, error) {
	total, err := strconv.Atoi(string(envelope.Values[envelopeTotal]))
	if err != nil || total < 0 {
		return core.PageInfo{}, wrongShape("page")
	}
	if raw := envelope.Values[envelopeSize]; raw != nil {
		size, err := strconv.Atoi(string(raw))
		if err != nil {
			return core.PageInfo{}, wrongShape("page")
		}
		if size != envelope.Rows {
			return core.PageInfo{}, core.WrapError(core.CodeUnavailable, "the upstream's page was cut short",
				fmt.Errorf("%w: %d rows of %d", upstream.ErrCut, envelope.Rows, size))
		}
	}
	return core.PageInfo{Rows: envelope.Rows, Total: total}, nil
}

// Record reads one analysis, whatever its state; Indexable says whether the state is a configured one. Errors are
// *core.Error: CodeAbsent with ErrAnalysisAbsent or ErrStudyAbsent, CodeOverloaded, CodeUnavailable (also for an
// answer that is no analysis), CodeUpstream (ErrOtherStudy among them), and CodeInvalid for an id that cannot be asked
// for.
func (c *Client) Record(ctx context.Context, organization, id string) (core.Record, error) {
	if id == "paginated" {
		// The path of this id is the path of the list.
		return core.Record{}, core.NewError(core.CodeInvalid, `"paginated" cannot be the id of an analysis`)
	}
	scanner := c.scanner()
	defer c.scanners.Put(scanner)
	answer, item, err := c.calls.Record(ctx, scanner, "", "studies", organization, "analysis", id)
	if err != nil {
		return core.Record{}, ownWords(err)
	}
	defer answer.Close()
	var reader recordReader
	record := reader.read(item)
	// What has no state would count as one that left the index, so only a real analysis passes.
	if record.ID == "" || record.Organization == "" || record.State == "" {
		answer.Fail()
		return core.Record{}, wrongShape("analysis")
	}
	if record.ID != id {
		return core.Record{}, core.WrapError(core.CodeUpstream, "the upstream answered with another analysis", errOtherID)
	}
	record.Indexable = slices.Contains(c.states, record.State)
	record.Release = answer.Keep()
	return record, nil
}

// errOtherID: the analysis that came is not the one that was asked for.
var errOtherID = errors.New("song: analysis of another id")

// recordReader makes Records of items. It keeps the last study and state, which are the same for most of a page.
type recordReader struct {
	study, state string
}

func (r *recordReader) read(item upstream.Item) core.Record {
	keep(&r.study, item.Values[memberStudy])
	keep(&r.state, item.Values[memberState])
	return core.Record{
		ID: string(item.Values[memberID]), Organization: r.study, State: r.state, Body: item.Body,
		TooLarge: item.TooLarge, HasRepositories: item.Noticed,
	}
}

// keep sets kept to text, without a new string when it says so already.
func keep(kept *string, text []byte) {
	if *kept != string(text) {
		*kept = string(text)
	}
}
