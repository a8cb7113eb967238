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

// Repository is one configured repository with what is needed to consume its Requests.
type Repository struct {
	core.Repository
	Upstream Upstream
	// Document appends the document made of a record to dst.
	Document func(dst []byte, rec core.Record) []byte
	Probe    Probe
	// RunAgain asks for a run of the whole repository, for an index that was lost. A run that is queued already will do.
	RunAgain func(ctx context.Context) error
	// Records, Batches, Pages and Runs are the repository's durable consumers.
	Records, Batches, Pages, Runs Source
	// NonOverlapping says that pages are given by number, so that each begins at a multiple of its size: a page cannot repeat a row
	// of the one before to show that nothing moved between them.
	NonOverlapping bool
	// PageSize is the number of rows of a page, 500 by default, and fewer while a page takes longer than a body may be old.
	// Concurrency is how many calls to the upstream may be in flight for records and, apart from them, for pages, 4 by default.
	PageSize    int
	Concurrency int
}

// Deps is what all repositories share; each member is required.
type Deps struct {
	Requests      Requests
	DeadLetters   DeadLetters
	Jobs          Jobs
	Organizations OrganizationRuns
	Pages         Pages
	Slots         Slots
	Index         Index
	Writer        *bulk.Writer
}

// Config holds the optional settings; its zero value is the default.
type Config struct {
	Logger  *slog.Logger
	Metrics *Metrics
	// AckWait is the consumers' ack wait, 30 s by default: messages in hand are reported as in progress every third
	// of it.
	AckWait time.Duration
	// MaxDeliver is the number of deliveries after which the queue gives up a message, 20 by default. A message is
	// published again after half of them, so that only one that ends the process each time reaches it.
	MaxDeliver int
	// RecordsInFlight bounds the record messages of a repository that are worked on, 256 by default.
	RecordsInFlight int
	// MaxRecordBytes is the size above which the upstreams hold no record, 32 MiB by default; it is named in dead letters.
	MaxRecordBytes int
	// PageAttempts is how often a page or a list of organizations is asked for before the job fails, 5 by default.
	PageAttempts int
	// RetryBase and RetryMax bound the growing delay between attempts, 200 ms and 60 s by default.
	RetryBase, RetryMax time.Duration
	// ProgressEvery is the shortest time between two writes of an organization's progress, 250 ms by default.
	ProgressEvery time.Duration
	// SweepTimeout is how long a sweep waits for the next of its records to end before its job ends partial, 1 minute
	// by default. The records are asked for all the same.
	SweepTimeout time.Duration
	// ClockSkew is how far a stored version may lie ahead of the message and of now before that is an alarm, 5 s by default:
	// a clock was set back.
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

// Consumers works on the Requests of all repositories until it is stopped.
type Consumers struct {
	deps  Deps
	cfg   Config
	repos map[string]*repository
	order []*repository

	heartbeat *heartbeat
	// draining ends first: nothing more is pulled and whoever waits gives its message back. work ends when the
	// time for stopping is up.
	draining, work        context.Context //nolint:containedctx // the two ends of the life that Start and Stop bound
	stopPulling, stopWork context.CancelFunc
	// loops end with draining and begin what is in hand; the keeper outlives both.
	loops, inFlight, heartbeats sync.WaitGroup
	startedAt                   time.Time
	startOnce, stopOnce         sync.Once
}

// New checks what it is given and makes the consumers; Start runs them.
func New(repositories []Repository, deps Deps, cfg Config) (*Consumers, error) {
	if deps.Requests == nil || deps.DeadLetters == nil || deps.Jobs == nil || deps.Organizations == nil ||
		deps.Pages == nil || deps.Slots == nil || deps.Index == nil || deps.Writer == nil {
		return nil, core.NewError(core.CodeInternal, "making consumers: a dependency is missing")
	}
	c := &Consumers{deps: deps, cfg: cfg.withDefaults(), repos: make(map[string]*repository, len(repositories))}
	c.draining, c.stopPulling = context.WithCancel(context.Background())
	c.work, c.stopWork = context.WithCancel(context.Background())
	c.heartbeat = newHeartbeat(c.cfg.AckWait / 3)
	for _, r := range repositories {
		if r.Upstream == nil || r.Document == nil || r.Probe == nil || r.RunAgain == nil || r.Records == nil || r.Batches == nil || r.Pages == nil || r.Runs == nil {
			return nil, core.NewError(core.CodeInternal, fmt.Sprintf("making consumers: repository %s lacks a part", r.Code))
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

// Start begins to work. It returns at once; a repository whose index does not answer is paused until it does.
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

// Stop pulls no more, lets the work in hand end until ctx does, then returns the rest back to the queue. Afterwards
// Start does nothing.
func (c *Consumers) Stop(ctx context.Context) error {
	var err error
	c.stopOnce.Do(func() {
		c.startOnce.Do(func() {})
		c.stopPulling()
		done := make(chan struct{})
		go func() {
			c.loops.Wait() // a pull that was under way may still bring messages
			c.inFlight.Wait()
			close(done)
		}()
		select {
		case <-done:
		case <-ctx.Done():
			err = fmt.Errorf("stopping consumers: work in hand was given back: %w", ctx.Err())
		}
		c.stopWork()
		<-done
		c.heartbeats.Wait()
	})
	return err
}

// Pause is a repository that takes no Requests for now, and why.
type Pause struct {
	Repository string `json:"repository"`
	Reason     string `json:"reason"`
	// Index is true when the repository waits for its index, and false when the index would take writes.
	Index bool `json:"-"`
}

// Paused lists the paused repositories in the order of the configuration; the reasons are displayable.
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

// ClockAlarm reports whether, in the last minute, a document was found whose version lies ahead of the clock.
func (c *Consumers) ClockAlarm() bool {
	for _, r := range c.order {
		if at := r.clockAlarm.Load(); at != 0 && time.Since(time.Unix(0, at)) < time.Minute {
			return true
		}
	}
	return false
}
