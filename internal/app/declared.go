package app

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"tutti/internal/app/check"
	"tutti/internal/app/settings"
	"tutti/internal/base/cache"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/index/mapping"
	"tutti/internal/upstream"
)

// declarations are what the repositories declare about the types of fields. It is safe for concurrent use.
type declarations struct {
	index declaringIndex
	log   *slog.Logger
	mu    sync.Mutex
	all   []*declaration
}

// declaringIndex is the part of the index that takes types.
type declaringIndex interface {
	Declare(alias string, types *mapping.Types)
}

// declaration is what one repository declares.
type declaration struct {
	of     *declarations
	rc     config.Repository
	source upstream.Declarer
	// jobs are those whose runs know what is declared.
	jobs *cache.LRU[string, struct{}]
	// types are those of the repository's documents, nil before they were read.
	types atomic.Pointer[mapping.Types]

	reading  *semaphore.Weighted // held during the calls to the repository
	read     bool
	began    time.Time
	revision string
	// asked is when the repository was last asked, successfully, what it declares or whether that has changed.
	asked time.Time
	// readFor is when the last reading for a record of an unknown type began.
	readFor time.Time
}

// readForInterval is the shortest time between two readings for records of unknown types.
const readForInterval = time.Minute

// maxDeclaredJobs is the number of jobs whose runs are known to have read what is declared.
const maxDeclaredJobs = 1000

// of returns the declaration of a repository, nil if its client declares nothing.
func (d *declarations) of(rc config.Repository, client upstream.Reader) *declaration {
	source, ok := client.(upstream.Declarer)
	if !ok {
		return nil
	}
	one := &declaration{of: d, rc: rc, source: source, jobs: cache.NewLRU[string, struct{}](maxDeclaredJobs), reading: semaphore.NewWeighted(1)}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, one)
	return one
}

// Read implements consumers.Types. Callers that wait together share one answer of the repository.
func (d *declaration) Read(ctx context.Context, jobID string, queuedAt time.Time) error {
	called := time.Now()
	if err := d.reading.Acquire(ctx, 1); err != nil {
		return err
	}
	defer d.reading.Release(1)
	if d.asked.After(called) {
		return nil
	}
	asked := time.Now()
	known, revision, err := d.known(ctx, jobID, queuedAt)
	if err != nil {
		return err
	}
	if known {
		if revision != "" {
			d.asked = asked
		}
		return nil
	}
	if err := d.request(ctx); err != nil {
		return err
	}
	d.revision, d.asked = revision, asked
	d.jobs.Put(jobID, struct{}{}, 1)
	return nil
}

// ReadFor implements consumers.Types: a trigger or a notification may be about a record of a type that was registered since the last run.
func (d *declaration) ReadFor(ctx context.Context, rec core.Record) error {
	of, names := d.source.(upstream.RecordDeclarer)
	if !names || of.Declares(rec) {
		return nil
	}
	if err := d.reading.Acquire(ctx, 1); err != nil {
		return err
	}
	defer d.reading.Release(1)
	began := time.Now()
	if of.Declares(rec) || !d.readFor.IsZero() && began.Sub(d.readFor) < readForInterval {
		return nil
	}
	if err := d.request(ctx); err != nil {
		return err
	}
	d.readFor = began
	return nil
}

// request requests what the repository declares. The caller must hold d.reading.
func (d *declaration) request(ctx context.Context) error {
	began := time.Now()
	types, none, err := d.source.Declared(ctx)
	if err != nil {
		return err
	}
	if none != "" && !d.read {
		d.of.log.Info("the repository declares no types: the values of fields decide", "repository", d.rc.Code, "reason", none)
	}
	types = settings.DocumentTypes(types, d.rc)
	d.types.Store(types)
	d.of.declare(d.rc.IndexName)
	d.read, d.began = true, began
	return nil
}

// known reports whether nothing must be requested, and returns the revision of what the repository declares, "" for none.
func (d *declaration) known(ctx context.Context, jobID string, queuedAt time.Time) (known bool, revision string, err error) {
	if of, revises := d.source.(upstream.Reviser); revises {
		revision, err = of.Revision(ctx)
		return d.read && revision == d.revision, revision, err
	}
	if !d.read || jobID == "" {
		return d.read, "", nil
	}
	if _, done := d.jobs.Get(jobID); done {
		return true, "", nil
	}
	if known = d.began.After(queuedAt); known {
		d.jobs.Put(jobID, struct{}{}, 1)
	}
	return known, "", nil
}

// declare declares the types of all repositories that write to an alias, also for the index that a rebuild of it fills.
func (d *declarations) declare(alias string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var types *mapping.Types
	for _, one := range d.all {
		if one.rc.IndexName == alias {
			types = types.Merge(one.types.Load())
		}
	}
	d.index.Declare(alias, types)
	d.index.Declare(core.NextAlias(alias), types)
}

// typesOf returns what a repository declares about its documents, as far as it was read.
func (d *declarations) typesOf(code string) *mapping.Types {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, one := range d.all {
		if one.rc.Code == code {
			return one.types.Load()
		}
	}
	return nil
}

// reasons returns a reason of Health for each repository that declares a path with several types.
func (d *declarations) reasons() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var reasons []string
	for _, one := range d.all {
		if text := check.Differing(one.types.Load()); text != "" {
			reasons = append(reasons, "repository "+one.rc.Code+" "+text)
		}
	}
	return reasons
}
