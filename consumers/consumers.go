package consumers

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"tutti/internal/bulk"
	"tutti/internal/core"
)

// Repository is one configured repository with its dependencies.
type Repository struct {
	core.Repository
	Upstream Upstream
	// Document appends the document made of a record to dst.
	Document func(dst []byte, rec core.Record) []byte
	Probe    Probe
	// RunAgain queues a run of the whole repository, for an index that was lost. A run that is already queued suffices.
	RunAgain func(ctx context.Context) error
	// Records, Batches, Pages and Runs are the repository's durable consumers.
	Records, Batches, Pages, Runs Source
	// NonOverlapping is true when the upstream pages by page number, so that each page begins at a multiple of its size: a
	// page cannot repeat the last row of the page before to show that no row moved between them.
	NonOverlapping bool
	// PageSize is the number of rows of a page, 500 by default; pages become smaller while one takes longer than the maximum
	// age of a body.
	PageSize int
	// Concurrency bounds the calls to the upstream in flight, for records and for pages separately, 4 by default.
	Concurrency int
}

// Deps are the dependencies that all repositories share; all are required.
type Deps struct {
	Requests      Requests
	DeadLetters   DeadLetters
	Jobs          Jobs
	Organizations OrganizationRuns
	Pages         Pages
	Cells         Cells
	Index         Index
	Writer        *bulk.Writer
}

// Config holds the optional settings; its zero value is the default.
type Config struct {
	Logger  *slog.Logger
	Metrics *Metrics
	// AckWait is the consumers' ack wait, 30 s by default. A heartbeat reports messages in flight as in progress every third
	// of it.
	AckWait time.Duration
	// MaxDeliver is the number of deliveries after which the queue drops a message, 20 by default. A message is republished
	// after half of them, so that only a message that ends the process each time reaches the limit.
	MaxDeliver int
	// RecordsInFlight bounds the record messages of a repository in flight, 256 by default.
	RecordsInFlight int
	// MaxRecordBytes is the largest size of a record that the upstreams return, 32 MiB by default; dead letters name it.
	MaxRecordBytes int
	// PageAttempts is how often a page or a list of organizations is requested before the job fails, 5 by default.
	PageAttempts int
	// RetryBase and RetryMax bound the backoff between attempts, 200 ms and 60 s by default.
	RetryBase, RetryMax time.Duration
	// ProgressEvery is the shortest interval between two writes of an organization's progress, 250 ms by default.
	ProgressEvery time.Duration
	// SweepTimeout is how long a sweep waits for the next of its records to end before its job ends partial, 1 minute by
	// default. The requests of the remaining records stay in the queue.
	SweepTimeout time.Duration
	// ClockSkew is how far a stored version may lie ahead of the message and of now before that raises the clock alarm, 5 s
	// by default: a clock was set back.
	ClockSkew time.Duration
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	setDefault(&c.AckWait, 30*time.Second)
	setDefault(&c.MaxDeliver, 20)
	setDefault(&c.RecordsInFlight, 256)
	setDefault(&c.MaxRecordBytes, core.DefaultMaxRecordBytes)
	setDefault(&c.PageAttempts, 5)
	setDefault(&c.RetryBase, 200*time.Millisecond)
	setDefault(&c.RetryMax, time.Minute)
	setDefault(&c.ProgressEvery, 250*time.Millisecond)
	setDefault(&c.SweepTimeout, time.Minute)
	setDefault(&c.ClockSkew, 5*time.Second)
	return c
}

func setDefault[T int | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// Consumers processes the Requests of all repositories until it is stopped.
type Consumers struct {
	deps  Deps
	cfg   Config
	repos map[string]*repository
	order []*repository

	heartbeat *heartbeat
	// draining ends first: from then on no messages are pulled, and goroutines that wait requeue their messages. work ends
	// when the context of Stop ends.
	draining, work        context.Context //nolint:containedctx // the two ends of the life that Start and Stop bound
	stopPulling, stopWork context.CancelFunc
	// loops end with draining and start the work in flight; the heartbeat outlives both.
	loops, inFlight, heartbeats sync.WaitGroup
	startedAt                   time.Time
	startOnce, stopOnce         sync.Once
}

// New validates its arguments and returns the consumers; Start runs them.
func New(repositories []Repository, deps Deps, cfg Config) (*Consumers, error) {
	if deps.Requests == nil || deps.DeadLetters == nil || deps.Jobs == nil || deps.Organizations == nil ||
		deps.Pages == nil || deps.Cells == nil || deps.Index == nil || deps.Writer == nil {
		return nil, core.NewError(core.CodeInternal, "making consumers: a dependency is missing")
	}
	c := &Consumers{deps: deps, cfg: cfg.withDefaults(), repos: make(map[string]*repository, len(repositories))}
	c.draining, c.stopPulling = context.WithCancel(context.Background())
	c.work, c.stopWork = context.WithCancel(context.Background())
	c.heartbeat = newHeartbeat(c.cfg.AckWait / 3)
	for _, r := range repositories {
		if r.Upstream == nil || r.Document == nil || r.Probe == nil || r.RunAgain == nil || r.Records == nil || r.Batches == nil || r.Pages == nil || r.Runs == nil {
			return nil, core.NewError(core.CodeInternal, fmt.Sprintf("making consumers: repository %s lacks a dependency", r.Code))
		}
		if _, twice := c.repos[r.Code]; twice {
			return nil, core.NewError(core.CodeInvalid, fmt.Sprintf("repository %s is configured twice", r.Code))
		}
		repo := newRepository(c, r)
		c.repos[r.Code] = repo
		c.order = append(c.order, repo)
	}
	return c, nil
}

// Start starts the consumers and returns at once. A repository whose index does not respond is paused until it does.
func (c *Consumers) Start() {
	c.startOnce.Do(func() {
		c.startedAt = time.Now()
		c.heartbeats.Go(func() { c.heartbeat.run(c.work) })
		for _, r := range c.order {
			c.loops.Go(r.watchIndex)
			c.loops.Go(r.pullRecords)
			c.loops.Go(r.pullBatches)
			c.loops.Go(r.pullPages)
			c.loops.Go(r.pullRuns)
		}
	})
}

// Stop stops pulling, waits for the work in flight until ctx ends, then requeues the rest. Start does nothing afterwards.
func (c *Consumers) Stop(ctx context.Context) error {
	var err error
	c.stopOnce.Do(func() {
		c.startOnce.Do(func() {})
		c.stopPulling()
		done := make(chan struct{})
		go func() {
			c.loops.Wait() // a fetch in flight may still return messages
			c.inFlight.Wait()
			close(done)
		}()
		select {
		case <-done:
		case <-ctx.Done():
			err = fmt.Errorf("stopping consumers: work in flight was requeued: %w", ctx.Err())
		}
		c.stopWork()
		<-done
		c.heartbeats.Wait()
	})
	return err
}

// Pause describes a repository that processes no Requests for now.
type Pause struct {
	Repository string `json:"repository"`
	Reason     string `json:"reason"`
	// Index reports whether the repository waits for its index; it is false when only the rejections pause it.
	Index bool `json:"-"`
}

// Paused lists the paused repositories in the order of the configuration; the reasons may be shown to users.
func (c *Consumers) Paused() []Pause {
	var out []Pause
	for _, r := range c.order {
		if reason := r.pause.reason(); reason != "" {
			pause, why := r.rejections.remaining(time.Now())
			out = append(out, Pause{Repository: r.Code, Reason: reason, Index: pause == 0 || reason != why})
		}
	}
	return out
}

// ClockAlarm reports whether a document with a version ahead of the clock was found in the last minute.
func (c *Consumers) ClockAlarm() bool {
	for _, r := range c.order {
		if at := r.clockAlarm.Load(); at != 0 && time.Since(time.Unix(0, at)) < time.Minute {
			return true
		}
	}
	return false
}
