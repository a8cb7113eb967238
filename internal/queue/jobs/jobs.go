// Package jobs holds the jobs of tutti in the key-value bucket: their organizations, by themselves and in groups, their lists of ids, and
// what is listed and watched of them.
package jobs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"tutti/internal/base/order"
	"tutti/internal/base/retry"
	"tutti/internal/core"
	"tutti/internal/queue/cells"
	"tutti/internal/queue/natsconn"
	"tutti/internal/queue/natsread"
	"tutti/internal/queue/paging"
	"tutti/internal/queue/subjects"
)

const (
	keyJob          = "job."
	keyOrganization = "organization."

	// jobCursor names the list of jobs in its cursors.
	jobCursor = "jobs"
)

// ErrUnchanged is returned by the function that is passed to Jobs.Update or Jobs.UpdateOrganization if there is
// nothing to write; the update then succeeds.
var ErrUnchanged = errors.New("unchanged")

// Jobs holds the jobs of tutti and the organizations of each: one key each, changed only by compare-and-swap.
type Jobs struct {
	bucket *cells.Bucket
	// pending returns the ids of the jobs that have a Request in the queue.
	pending func(ctx context.Context) (map[string]struct{}, error)
	index   jobIndex
}

// New returns the jobs in a bucket. pending returns the ids of the jobs that have a Request in the queue.
func New(b *cells.Bucket, pending func(context.Context) (map[string]struct{}, error)) *Jobs {
	return &Jobs{bucket: b, pending: pending}
}

// Groups returns the groups of organizations of the jobs.
func (j *Jobs) Groups() *Groups { return &Groups{jobs: j} }

// Lists returns the lists of ids of the jobs.
func (j *Jobs) Lists() *Lists { return &Lists{jobs: j} }

func jobKey(id string) string { return keyJob + subjects.EncodeToken(id) }

func organizationKey(jobID, organization string) string {
	return keyOrganization + subjects.EncodeToken(jobID) + "." + subjects.EncodeToken(organization)
}

// Create stores a new job; CodeConflict when the ID is taken, CodeInvalid when it is not valid.
func (j *Jobs) Create(ctx context.Context, job core.Job) error {
	if err := core.ValidKey("job id", job.ID); err != nil {
		return err
	}
	created, err := j.create(ctx, jobKey(job.ID), job)
	if err != nil {
		return natsconn.WrapError("creating the job", err)
	}
	if !created {
		return core.NewError(core.CodeConflict, "a job with this id already exists")
	}
	return nil
}

// Get returns a job; CodeNotFound when there is none with this id.
func (j *Jobs) Get(ctx context.Context, id string) (core.Job, error) {
	var job core.Job
	_, _, err := j.get(ctx, jobKey(id), &job)
	if natsconn.IsNotFound(err) {
		return core.Job{}, jobNotFound()
	}
	return job, natsconn.WrapError("reading the job", err)
}

func jobNotFound() error { return core.NewError(core.CodeNotFound, "no such job") }

// Update reads a job, calls change and writes the result by compare-and-swap, repeating all of it after a conflict,
// so that change may be called more than once. An error of change is returned unchanged, with nothing written; for
// ErrUnchanged, or if change leaves the job as it was, Update succeeds without writing. It returns the job as it is stored now.
func (j *Jobs) Update(ctx context.Context, id string, change func(*core.Job) error) (core.Job, error) {
	job, err := update(ctx, j, jobKey(id), change)
	if isMissing(err) {
		return core.Job{}, jobNotFound()
	}
	if err == nil && job.State.Final() {
		j.ensureSummary(ctx, job)
	}
	return job, err
}

// CreateOrganization stores a new organization of a job; false when it already exists.
func (j *Jobs) CreateOrganization(ctx context.Context, jobID string, run core.OrganizationRun) (bool, error) {
	if err := errors.Join(core.ValidKey("job id", jobID), core.ValidKey("organization", run.Organization)); err != nil {
		return false, natsconn.WrapError("creating an organization of the job", err)
	}
	created, err := j.create(ctx, organizationKey(jobID, run.Organization), run)
	if err == nil {
		err = j.organizationChanged(ctx, jobID)
	}
	return created, natsconn.WrapError("creating an organization of the job", err)
}

// Organization returns one organization of a job; CodeNotFound when there is none.
func (j *Jobs) Organization(ctx context.Context, jobID, organization string) (core.OrganizationRun, error) {
	var run core.OrganizationRun
	_, _, err := j.get(ctx, organizationKey(jobID, organization), &run)
	if natsconn.IsNotFound(err) {
		_, run, err := j.findInGroup(ctx, jobID, organization)
		return run, err
	}
	return run, natsconn.WrapError("reading an organization of the job", err)
}

func organizationNotFound() error {
	return core.NewError(core.CodeNotFound, "no such organization of this job")
}

// UpdateOrganization is Update for one organization of a job. One of a group is changed there.
func (j *Jobs) UpdateOrganization(
	ctx context.Context, jobID, organization string, change func(*core.OrganizationRun) error,
) (core.OrganizationRun, error) {
	run, err := update(ctx, j, organizationKey(jobID, organization), change)
	if isMissing(err) {
		return j.updateInGroup(ctx, jobID, organization, change)
	}
	if err == nil {
		err = j.organizationChanged(ctx, jobID)
	}
	return run, err
}

// Organizations returns all organizations of a job, sorted by name.
func (j *Jobs) Organizations(ctx context.Context, jobID string) ([]core.OrganizationRun, error) {
	stored, err := j.readOrganizations(ctx, jobID)
	if err != nil {
		return nil, err
	}
	runs, err := stored.all()
	if err != nil {
		return nil, err
	}
	order.Sort(runs, func(a, b core.OrganizationRun) int { return strings.Compare(a.Organization, b.Organization) })
	return runs, nil
}

// List returns the jobs that f selects, the newest first (their ids are UUIDs of version 7, which sort by time), and
// the cursor of the next page, empty after the last one. A page has 50 jobs by default, and at most 1000. CodeInvalid for an invalid cursor.
func (j *Jobs) List(ctx context.Context, f core.JobFilter) ([]core.Job, string, error) {
	after := ""
	if f.Cursor != "" {
		var err error
		if after, err = paging.DecodeCursor(jobCursor, f.Cursor); err != nil {
			return nil, "", err
		}
	}
	// The jobs of the page are read one by one: a consumer of all jobs takes the longer the more organizations the bucket has.
	limit := paging.Size(f.Limit)
	var ids []string
	var err error
	if f.Repository == "" && f.State == "" {
		ids, _, err = j.readIDs(ctx)
		slices.Reverse(ids)
	} else {
		err = j.indexed(ctx, func(id string, job indexedJob) {
			if f.Matches(job.Repository, job.State) {
				ids = append(ids, id)
			}
		})
	}
	if err != nil {
		return nil, "", err
	}
	page := make([]core.Job, 0, min(limit, len(ids)))
	for _, id := range ids {
		if after != "" && id >= after {
			continue
		}
		if len(page) == limit {
			return page, paging.EncodeCursor(jobCursor, page[limit-1].ID), nil
		}
		job, err := j.Get(ctx, id)
		switch {
		case core.CodeOf(err) == core.CodeNotFound: // removed since
		case err != nil:
			return nil, "", err
		case f.Matches(job.Repository, job.State): // else changed since
			page = append(page, job)
		}
	}
	return page, "", nil
}

func sortNewestFirst(jobs []core.Job) {
	order.Sort(jobs, func(a, b core.Job) int { return cmp.Compare(b.ID, a.ID) })
}

// Counts returns the number of jobs in each state, of all repositories; it has every state.
func (j *Jobs) Counts(ctx context.Context) (map[core.JobState]int, error) {
	counts := make(map[core.JobState]int, len(core.JobStates()))
	for _, state := range core.JobStates() {
		counts[state] = 0
	}
	err := j.indexed(ctx, func(_ string, job indexedJob) { counts[job.State]++ })
	if err != nil {
		return nil, err
	}
	return counts, nil
}

// create stores a new key; false when it already exists.
func (j *Jobs) create(ctx context.Context, key string, value any) (bool, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return false, core.WrapError(core.CodeInternal, "encoding a job", err)
	}
	err = j.bucket.Create(ctx, key, data)
	if natsconn.IsConflict(err) {
		return false, nil
	}
	return err == nil, err
}

// get decodes the value of a key into value, and returns its bytes and revision.
func (j *Jobs) get(ctx context.Context, key string, value any) ([]byte, uint64, error) {
	entry, err := j.bucket.KV.Get(ctx, key)
	if err != nil {
		return nil, 0, err
	}
	if err := json.Unmarshal(entry.Value(), value); err != nil {
		return nil, 0, core.WrapError(core.CodeInternal, "decoding a job", err)
	}
	return entry.Value(), entry.Revision(), nil
}

// missingKeyError marks that the key to update does not exist, as opposed to a CodeNotFound of the change function.
type missingKeyError struct{ err error }

// Error implements error.
func (e *missingKeyError) Error() string { return e.err.Error() }

func isMissing(err error) bool {
	var missing *missingKeyError
	return errors.As(err, &missing)
}

// update repeats a read, a change and a compare-and-swap until the swap succeeds.
func update[T any](ctx context.Context, j *Jobs, key string, change func(*T) error) (T, error) {
	var zero T
	var written []byte
	for {
		var value T
		old, revision, err := j.get(ctx, key, &value)
		if natsconn.IsNotFound(err) {
			return zero, &missingKeyError{err}
		}
		if err != nil {
			return zero, natsconn.WrapError("reading a job", err)
		}
		if written != nil && bytes.Equal(old, written) {
			// The write whose answer was lost succeeded.
			return value, nil
		}
		if err := change(&value); errors.Is(err, ErrUnchanged) {
			return value, nil
		} else if err != nil {
			return zero, err
		}
		data, err := json.Marshal(value)
		if err != nil {
			return zero, core.WrapError(core.CodeInternal, "encoding a job", err)
		}
		if bytes.Equal(old, data) {
			return value, nil
		}
		err = j.bucket.Update(ctx, key, data, revision)
		if err == nil {
			return value, nil
		}
		if err = natsconn.WrapError("writing a job", err); !natsconn.IsConflict(err) {
			if written != nil || ctx.Err() != nil || core.CodeOf(err) != core.CodeUnavailable {
				return zero, err
			}
			written = data
		}
		if err := retry.Sleep(ctx, natsconn.ConflictDelay()); err != nil {
			return zero, natsconn.WrapError("writing a job", err)
		}
	}
}

// readKeys decodes the values of all keys that match filter, each once.
func readKeys[T any](ctx context.Context, j *Jobs, filter string) ([]T, error) {
	byKey := make(map[string]T)
	err := natsread.All(ctx, j.bucket.Conn, j.bucket.Stream, cells.Prefix+filter, func(m natsread.Message) error {
		if cells.IsDeleted(m.Header) {
			delete(byKey, m.Subject)
			return nil
		}
		var value T
		if err := json.Unmarshal(m.Data, &value); err != nil {
			return core.WrapError(core.CodeInternal, "decoding a job", err)
		}
		byKey[m.Subject] = value
		return nil
	})
	if err != nil {
		return nil, err
	}
	values := make([]T, 0, len(byKey))
	for _, value := range byKey {
		values = append(values, value)
	}
	return values, nil
}
