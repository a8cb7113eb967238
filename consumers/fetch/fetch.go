// Package fetch calls the upstream of a repository: it bounds the calls in flight, counts their results, and confirms that an
// organization is absent.
//
// It imports internal/core, internal/base/span and consumers/outcome only.
package fetch

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"tutti/consumers/outcome"
	"tutti/internal/base/span"
	"tutti/internal/core"
)

// Holders finds the records that contain others (core.Part).
type Holders interface {
	// Holder returns the id of the record that contains a part, "" if that is not known or not exactly one. isPart is false if no record
	// contains it.
	Holder(ctx context.Context, organization string, part core.Part) (id string, isPart bool, err error)
	// OtherEntities returns the entities whose records are parts of others, as far as they are known.
	OtherEntities(ctx context.Context) ([]string, error)
}

// Types makes what a repository declares about the types of fields known to the index.
type Types interface {
	// Read returns nil once what the repository declares is known: as of the beginning of the run of a job that was queued at that time, or
	// for "" as far as it need not be requested again. Errors are those of Upstream.Organizations.
	Read(ctx context.Context, jobID string, queuedAt time.Time) error
	// ReadFor reads again what the repository declares if what declares the fields of a record is not known, at most once in a while. Errors are
	// those of Read.
	ReadFor(ctx context.Context, rec core.Record) error
}

// Config holds the settings of a Fetcher; all but Metrics, Holders and Types are required.
type Config struct {
	// Repository is the code of the repository.
	Repository string
	Logger     *slog.Logger
	Metrics    *outcome.Metrics
	// Concurrency bounds the calls in flight, for records and for pages separately.
	Concurrency int
	// MaxBodyAge is the age from which a body must not be written.
	MaxBodyAge time.Duration
	// Holders is nil for a repository whose records never contain others.
	Holders Holders
	// Types is nil for a repository that declares nothing.
	Types Types
}

// Fetcher calls the upstream of one repository. It is safe for concurrent use.
type Fetcher struct {
	upstream      core.Upstream
	cfg           Config
	records       *semaphore.Weighted // calls for records in flight
	pages         *semaphore.Weighted // calls for pages in flight
	organizations organizationList
}

// New returns a Fetcher.
func New(upstream core.Upstream, cfg Config) *Fetcher {
	return &Fetcher{
		upstream: upstream, cfg: cfg,
		records: semaphore.NewWeighted(int64(cfg.Concurrency)), pages: semaphore.NewWeighted(int64(cfg.Concurrency)),
		organizations: newOrganizationList(),
	}
}

// Retryable reports whether a call to an upstream may succeed on a retry.
func Retryable(err error) bool {
	return core.Retryable(err) || errors.Is(err, core.ErrForeignNotFound) && !errors.Is(err, errNotFoundPersists)
}

// Unanswered reports whether err says that an upstream does not answer: calls time out, are refused or rate-limited, or return
// a server error or a 404 that is not the upstream's own. It is false for nil.
func Unanswered(err error) bool {
	return Retryable(err) && !errors.Is(err, core.ErrOrganizationAbsent)
}

// AsksTooMuch reports whether a page that failed with err may be returned with fewer rows: the upstream says so, or it does not answer
// the page while it answers its list of organizations. It is false for nil.
func (f *Fetcher) AsksTooMuch(ctx context.Context, err error) bool {
	if errors.Is(err, core.ErrAskedTooMuch) {
		return true
	}
	if !Unanswered(err) || errors.Is(err, core.ErrRateLimited) || errors.Is(err, core.ErrForeignNotFound) {
		return false
	}
	_, listErr := f.organizations.get(ctx, f.upstream)
	return ctx.Err() == nil && !Unanswered(listErr)
}

// Record fetches req's record. check, nil for none, is called when the call may start; an error of check is returned instead. An indexable
// record of another organization than req's is core.ErrOtherOrganization; the returned record then contains its organization
// if the upstream returned it.
//
// Release is never nil. Until it is called, a record that can be written keeps its memory and counts as a call in flight. So
// Config.Concurrency also bounds the records between the upstream and the bulk writer.
func (f *Fetcher) Record(ctx context.Context, req core.Request, check func() error) (core.Record, time.Time, error) {
	if err := f.records.Acquire(ctx, 1); err != nil {
		return core.Record{Release: func() {}}, time.Time{}, err
	}
	rec, fetchedAt, err := f.record(ctx, req, check)
	body := rec.Release
	rec.Release = sync.OnceFunc(func() {
		if body != nil {
			body()
		}
		f.records.Release(1)
	})
	if err != nil || !rec.Indexable || rec.TooLarge != nil {
		rec.Release()
	}
	return rec, fetchedAt, err
}

// notFoundFor is how long a record is retried while its upstream returns core.ErrForeignNotFound. After that the upstream's list
// of organizations decides: while it is not answered either, the upstream is down, else a retry does not fix the record.
const notFoundFor = 10 * time.Minute

// errNotFoundPersists: a core.ErrForeignNotFound after notFoundFor, while the upstream answers its list of organizations.
var errNotFoundPersists = errors.New("the upstream answers other calls")

// record makes the call of Record.
func (f *Fetcher) record(ctx context.Context, req core.Request, check func() error) (core.Record, time.Time, error) {
	if check != nil {
		if err := check(); err != nil {
			return core.Record{}, time.Time{}, err
		}
	}
	expired := !req.NotFoundSince.IsZero() && time.Since(req.NotFoundSince) >= notFoundFor
	if expired {
		if _, err := f.organizations.get(ctx, f.upstream); Unanswered(err) {
			f.count(err, 1)
			return core.Record{}, time.Time{}, core.WrapError(core.CodeUnavailable, core.MessageOf(err), errors.New(err.Error()))
		}
	}
	if err := f.ReadTypes(ctx, core.Job{}); err != nil {
		f.count(err, 1)
		return core.Record{}, time.Time{}, err
	}
	fetchedAt := time.Now()
	call, s := f.call(ctx, "fetch record")
	rec, err := f.upstream.Record(call, req.Organization, req.RecordID)
	s.End(err)
	// There is no smaller request than that of one record, so a slow upstream's records would always be too old. They may
	// therefore wait for at least half of the maximum age after the response. An Upstream that made the call wait for memory
	// requests the record again itself.
	if youngest := time.Now().Add(-f.cfg.MaxBodyAge / 2); fetchedAt.Before(youngest) {
		fetchedAt = youngest
	}
	err = f.confirmAbsent(ctx, req.Organization, err)
	if expired && errors.Is(err, core.ErrForeignNotFound) {
		err = core.WrapError(core.CodeUpstream, core.MessageOf(err), errors.Join(errNotFoundPersists, err))
	}
	if err == nil && rec.ID != req.RecordID {
		err = core.NewError(core.CodeUpstream, "the repository returned another record than the requested one")
	}
	if err == nil && rec.Indexable && f.cfg.Types != nil {
		err = f.cfg.Types.ReadFor(ctx, rec)
	}
	f.count(err, 1)
	if err == nil && rec.Indexable && rec.Organization != req.Organization {
		err = core.WrapError(core.CodeUpstream, "the record belongs to another organization", core.ErrOtherOrganization)
	}
	return rec, fetchedAt, err
}

// ReadTypes makes what the repository declares known to the index before documents of a job, or of none, are written.
func (f *Fetcher) ReadTypes(ctx context.Context, job core.Job) error {
	if f.cfg.Types == nil {
		return nil
	}
	call, s := f.call(ctx, "fetch types")
	err := f.cfg.Types.Read(call, job.ID, job.QueuedAt)
	s.End(err)
	return err
}

// Holder returns the id of the record that contains a part, as Holders does; isPart is false without Holders.
func (f *Fetcher) Holder(ctx context.Context, organization string, part core.Part) (id string, isPart bool, err error) {
	if f.cfg.Holders == nil {
		return "", false, nil
	}
	if err := f.records.Acquire(ctx, 1); err != nil {
		return "", false, err
	}
	defer f.records.Release(1)
	call, s := f.call(ctx, "fetch holder")
	id, isPart, err = f.cfg.Holders.Holder(call, organization, part)
	s.End(err)
	return id, isPart, err
}

// OtherEntities returns the entities whose records are parts of others, none without Holders or if they are not known.
func (f *Fetcher) OtherEntities(ctx context.Context) []string {
	if f.cfg.Holders == nil {
		return nil
	}
	call, s := f.call(ctx, "fetch entities")
	entities, err := f.cfg.Holders.OtherEntities(call)
	s.End(err)
	if err != nil {
		f.cfg.Logger.InfoContext(ctx, "the repository did not return its entities: documents of parts are removed as other unseen ones", "err", err)
	}
	return entities
}

// PageCall is a call for rows of an organization's list.
type PageCall struct {
	// Job is the one whose run reads the list.
	Job           core.Job
	Organization  string
	Offset, Limit int
	// Begin is called when the call may start; Page returns its error instead. It is nil for none.
	Begin func() error
}

// Page fetches a page, when the call may start and what the repository declares is known to the index. It calls each for every row, which
// reports whether the row counts as fetched.
func (f *Fetcher) Page(ctx context.Context, c PageCall, each func(core.Record) (counts bool, err error)) (info core.PageInfo, err error) {
	if err := f.pages.Acquire(ctx, 1); err != nil {
		return info, err
	}
	defer f.pages.Release(1)
	if err := f.ReadTypes(ctx, c.Job); err != nil {
		f.countPage(0, err)
		return info, err
	}
	if c.Begin != nil {
		if err := c.Begin(); err != nil {
			return info, err
		}
	}
	rows := 0
	call, s := f.call(ctx, "fetch page")
	info, err = f.upstream.Page(call, c.Organization, c.Offset, c.Limit, func(rec core.Record) error {
		counts, err := each(rec)
		if counts {
			rows++
		}
		return err
	})
	s.Int("rows", int64(info.Rows))
	s.End(err)
	err = f.confirmAbsent(ctx, c.Organization, err)
	f.countPage(rows, err)
	return info, err
}

// Row fetches one row, when the call may start.
func (f *Fetcher) Row(ctx context.Context, organization string, offset int, each func(core.Record) error) error {
	if err := f.pages.Acquire(ctx, 1); err != nil {
		return err
	}
	defer f.pages.Release(1)
	call, s := f.call(ctx, "fetch row")
	_, err := f.upstream.Page(call, organization, offset, 1, each)
	s.End(err)
	f.countPage(0, err)
	return err
}

// countPage counts the rows that a call returned, and its error.
func (f *Fetcher) countPage(rows int, err error) {
	f.count(nil, rows)
	if err != nil {
		f.count(err, 1)
	}
}

// Organizations returns the upstream's organizations.
func (f *Fetcher) Organizations(ctx context.Context) ([]string, error) {
	call, s := f.call(ctx, "fetch organizations")
	listed, err := f.upstream.Organizations(call)
	s.End(err)
	return listed, err
}

// call starts the span of a call to the upstream.
func (f *Fetcher) call(ctx context.Context, name string) (context.Context, span.Span) {
	ctx, s := span.Call(ctx, name)
	s.Text("repository", f.cfg.Repository)
	return ctx, s
}

// CurrentOrganizations returns the valid names of a list of organizations that was requested after this call began. Concurrent
// callers share it.
func (f *Fetcher) CurrentOrganizations(ctx context.Context) ([]string, error) {
	listed, err := f.organizations.get(ctx, f.upstream)
	if err != nil {
		return nil, err
	}
	return f.ValidOrganizations(listed), nil
}

// ValidOrganizations returns the distinct names that can be part of a Request; the others are logged.
func (f *Fetcher) ValidOrganizations(listed []string) []string {
	out := make([]string, 0, len(listed))
	seen := make(map[string]struct{}, len(listed))
	for _, organization := range listed {
		if err := core.ValidKey("organization", organization); err != nil {
			f.cfg.Logger.Warn("skipping an organization whose name cannot be part of a request",
				"organization", outcome.Truncate(organization, maxNameBytes), "err", err)
			continue
		}
		if _, twice := seen[organization]; !twice {
			seen[organization] = struct{}{}
			out = append(out, organization)
		}
	}
	return out
}

// maxNameBytes bounds the name of an organization in a log line.
const maxNameBytes = 600

// confirmAbsent returns err. When err is an organization's absence and the upstream's own list contains the organization
// (CONTRACT section 1), the upstream contradicts itself, which may be temporary.
func (f *Fetcher) confirmAbsent(ctx context.Context, organization string, err error) error {
	if !errors.Is(err, core.ErrOrganizationAbsent) {
		return err
	}
	listed, listErr := f.organizations.get(ctx, f.upstream)
	if listErr != nil {
		return listErr
	}
	if slices.Contains(listed, organization) {
		return core.WrapError(core.CodeUnavailable, "the repository lists the organization but does not find it", err)
	}
	return err
}

// count counts n results of calls.
func (f *Fetcher) count(err error, n int) {
	f.cfg.Metrics.AddFetched(f.cfg.Repository, resultOf(err), n)
}

// resultOf returns the result label of err for the metric of fetched records.
func resultOf(err error) string {
	switch {
	case err == nil:
		return "ok"
	case core.CodeOf(err) == core.CodeAbsent:
		return "absent"
	case Retryable(err):
		return "unavailable"
	default:
		return "refused"
	}
}
