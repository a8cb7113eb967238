package local

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
)

// Repository is the part of the built-in metadata repository that indexing reads.
type Repository interface {
	// Studies returns the ids of all studies in order.
	Studies(ctx context.Context) ([]string, error)
	// Analysis returns one analysis in any state. CodeNotFound with an ErrorID when the analysis or the study does not exist.
	Analysis(ctx context.Context, study, id string) (datamodel.Analysis, error)
	// Page calls each for at most limit analyses of a study in some states, from a row offset, in submission order. An Analysis is
	// valid until each returns. CodeNotFound with an ErrorID for an unknown study.
	Page(ctx context.Context, study string, states []datamodel.AnalysisState, offset, limit int,
		each func(datamodel.Analysis) error) (core.PageInfo, error)
}

// Meter records the duration of calls.
type Meter interface {
	// Observe records the duration of a call for a repository; up is false when the call failed.
	Observe(repository string, took time.Duration, up bool)
}

// Config configures a Client. The zero value is the default.
type Config struct {
	// States are the indexed states of analyses. Default PUBLISHED.
	States []string
	// MaxRecordBytes bounds an analysis in bytes; of a larger one only Record.TooLarge is returned. Default: any size.
	MaxRecordBytes int
	// Repository is the code of the repository, the label of the metrics.
	Repository string
	// Metrics measures calls; nil measures nothing.
	Metrics Meter
	// Types are the analysis types, which only Declared and Revision read.
	Types AnalysisTypes
}

// Client reads the built-in metadata repository like the other upstreams' clients read theirs. It is safe for concurrent use.
type Client struct {
	repository Repository
	states     []datamodel.AnalysisState
	cfg        Config
}

// New returns a Client of r. CodeInvalid for an unknown state.
func New(r Repository, cfg Config) (*Client, error) {
	c := &Client{repository: r, cfg: cfg}
	for _, s := range cfg.States {
		state := datamodel.AnalysisState(s)
		if !state.Valid() {
			return nil, &core.Error{
				Code: core.CodeInvalid, Message: fmt.Sprintf("%q is not a state of analyses", s),
				Hint: "use UNPUBLISHED, PUBLISHED or SUPPRESSED",
			}
		}
		c.states = append(c.states, state)
	}
	if len(c.states) == 0 {
		c.states = []datamodel.AnalysisState{datamodel.StatePublished}
	}
	return c, nil
}

// Close has no effect: the caller of New owns the repository.
func (c *Client) Close() {}

// Organizations returns the ids of all studies in order. Errors are those of Record.
func (c *Client) Organizations(ctx context.Context) ([]string, error) {
	begin := time.Now()
	studies, err := c.repository.Studies(ctx)
	c.observe(ctx, time.Since(begin), err)
	return studies, upstreamError(err)
}

// Page reads limit rows of a study's analyses in the configured states from row offset on, and calls each for every record in order;
// the Record's Body is valid only until each returns. An error of each ends the page and is returned unchanged. Others are those of
// Record, and CodeInvalid for an invalid offset or limit.
func (c *Client) Page(
	ctx context.Context, organization string, offset, limit int, each func(core.Record) error,
) (core.PageInfo, error) {
	if offset < 0 || limit < 1 {
		return core.PageInfo{}, core.NewError(core.CodeInvalid, "the offset of a page must be at least 0 and its limit at least 1")
	}
	var refused error
	var held time.Duration // the time spent in each, which does not count
	begin := time.Now()
	info, err := c.repository.Page(ctx, organization, c.states, offset, limit, func(a datamodel.Analysis) error {
		called := time.Now()
		refused = each(c.record(a))
		held += time.Since(called)
		return refused
	})
	took := time.Since(begin) - held
	if refused != nil {
		c.observe(ctx, took, nil)
		return info, refused
	}
	c.observe(ctx, took, err)
	return info, upstreamError(err)
}

// Record reads one analysis in any state; Indexable reports whether the state is configured. Errors are *core.Error: CodeAbsent with
// core.ErrRecordAbsent or core.ErrOrganizationAbsent, CodeUnavailable or CodeOverloaded from the store, CodeInvalid for an id that
// cannot be requested, CodeUpstream for the rest.
func (c *Client) Record(ctx context.Context, organization, id string) (core.Record, error) {
	begin := time.Now()
	a, err := c.repository.Analysis(ctx, organization, id)
	c.observe(ctx, time.Since(begin), err)
	if err != nil {
		return core.Record{}, upstreamError(err)
	}
	return c.record(a), nil
}

func (c *Client) record(a datamodel.Analysis) core.Record {
	record := core.Record{
		ID: a.ID, Organization: a.Study, State: string(a.State), Indexable: slices.Contains(c.states, a.State),
	}
	if c.cfg.MaxRecordBytes > 0 && len(a.Body) > c.cfg.MaxRecordBytes {
		record.TooLarge = core.NewDeadLetterDocument(a.Body)
		return record
	}
	record.Body, record.HasRepositories = a.Body, hasRepositories(a.Body)
	return record
}

// hasRepositories reports whether an analysis has a member with the name that tutti adds. Only the few bodies with that word, or an
// escape that can spell a letter of it, are parsed.
func hasRepositories(body []byte) bool {
	const member = "repositories"
	if !bytes.Contains(body, []byte(member)) && !bytes.Contains(body, []byte(`\u`)) {
		return false
	}
	return gjson.GetBytes(body, member).Exists()
}

// observe records a call, unless its caller canceled it.
func (c *Client) observe(ctx context.Context, took time.Duration, err error) {
	if c.cfg.Metrics == nil || ctx.Err() != nil {
		return
	}
	c.cfg.Metrics.Observe(c.cfg.Repository, took, !down(err))
}
