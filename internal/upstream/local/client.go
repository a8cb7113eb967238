package local

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
)

// Repository is the built-in metadata repository, as far as it is read to be indexed.
type Repository interface {
	// Studies returns the ids of all studies in order.
	Studies(ctx context.Context) ([]string, error)
	// Analysis returns one analysis in any state. CodeNotFound with an ErrorID when there is none, or no such study.
	Analysis(ctx context.Context, study, id string) (core.Analysis, error)
	// Page calls each for at most limit analyses of a study in some states, from a row offset, in the order of their
	// submission. An Analysis is valid until each returns. CodeNotFound with an ErrorID for an unknown study.
	Page(ctx context.Context, study string, states []core.AnalysisState, offset, limit int,
		each func(core.Analysis) error) (core.PageInfo, error)
}

// Meter takes how long calls took.
type Meter interface {
	// Observe notes a call for a repository that took so long; up is false when it was not answered.
	Observe(repository string, took time.Duration, up bool)
}

// Config adjusts a Client. The zero value is the default.
type Config struct {
	// States are the states of analyses that belong into the index. Default PUBLISHED.
	States []string
	// MaxRecordBytes is the size of the largest analysis that is passed on, in bytes; of a larger one only Record.TooLarge
	// is known. Default: any size.
	MaxRecordBytes int
	// Repository is the code of the repository, the label of the measurements.
	Repository string
	// Metrics measures calls; nil measures nothing.
	Metrics Meter
}

// Client reads the built-in metadata repository as the other upstreams' clients read theirs. It is safe for concurrent
// use.
type Client struct {
	repository Repository
	states     []core.AnalysisState
	cfg        Config
}

// New makes a Client of r. A state that there is none of is CodeInvalid.
func New(r Repository, cfg Config) (*Client, error) {
	c := &Client{repository: r, cfg: cfg}
	for _, s := range cfg.States {
		state := core.AnalysisState(s)
		if !state.Valid() {
			return nil, &core.Error{
				Code: core.CodeInvalid, Message: fmt.Sprintf("there is no state %q of analyses", s),
				Hint: "use UNPUBLISHED, PUBLISHED or SUPPRESSED",
			}
		}
		c.states = append(c.states, state)
	}
	if len(c.states) == 0 {
		c.states = []core.AnalysisState{core.StatePublished}
	}
	return c, nil
}

// Close does nothing: the repository is its maker's.
func (c *Client) Close() {}

// Organizations returns the ids of all studies in order. Errors are those of Record.
func (c *Client) Organizations(ctx context.Context) ([]string, error) {
	begin := time.Now()
	studies, err := c.repository.Studies(ctx)
	c.observe(ctx, time.Since(begin), err)
	return studies, fault(err)
}

// Page reads limit rows of a study's analyses in the configured states from row offset on, and calls each for every record
// in order; the Record's Body is valid only until each returns. An error of each ends the page and is returned as it is.
// Others are those of Record, and CodeInvalid for rows that there cannot be.
func (c *Client) Page(
	ctx context.Context, organization string, offset, limit int, each func(core.Record) error,
) (core.PageInfo, error) {
	if offset < 0 || limit < 1 {
		return core.PageInfo{}, core.NewError(core.CodeInvalid, "a page needs a row offset from 0 and a limit from 1")
	}
	var refused error
	var held time.Duration // the time that each took, which is not the repository's
	begin := time.Now()
	info, err := c.repository.Page(ctx, organization, c.states, offset, limit, func(a core.Analysis) error {
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
	return info, fault(err)
}

// Record reads one analysis, whatever its state; Indexable says whether the state is a configured one. Errors are
// *core.Error: CodeAbsent with core.ErrRecordAbsent or core.ErrOrganizationAbsent, CodeUnavailable or CodeOverloaded from
// the store, CodeInvalid for an id that cannot be asked for, CodeUpstream for the rest.
func (c *Client) Record(ctx context.Context, organization, id string) (core.Record, error) {
	begin := time.Now()
	a, err := c.repository.Analysis(ctx, organization, id)
	c.observe(ctx, time.Since(begin), err)
	if err != nil {
		return core.Record{}, fault(err)
	}
	return c.record(a), nil
}

func (c *Client) record(a core.Analysis) core.Record {
	record := core.Record{
		ID: a.ID, Organization: a.Study, State: string(a.State), Indexable: slices.Contains(c.states, a.State),
	}
	if c.cfg.MaxRecordBytes > 0 && len(a.Body) > c.cfg.MaxRecordBytes {
		record.TooLarge = core.KeepDocument(a.Body)
		return record
	}
	record.Body, record.HasRepositories = a.Body, hasRepositories(a.Body)
	return record
}

// hasRepositories reports whether an analysis has a member of the name that tutti returns to its own. Few have the word, or an
// escape that can spell a letter of it; only those are looked into.
func hasRepositories(body []byte) bool {
	const member = "repositories"
	if !bytes.Contains(body, []byte(member)) && !bytes.Contains(body, []byte(`\u`)) {
		return false
	}
	return gjson.GetBytes(body, member).Exists()
}

// observe notes a call, unless its caller gave it up: then nothing is known.
func (c *Client) observe(ctx context.Context, took time.Duration, err error) {
	if c.cfg.Metrics == nil || ctx.Err() != nil {
		return
	}
	c.cfg.Metrics.Observe(c.cfg.Repository, took, !down(err))
}
