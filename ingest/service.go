package ingest

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"tutti/ingest/event"
	"tutti/internal/base/cache"
	"tutti/internal/base/keylock"
	"tutti/internal/base/span"
	"tutti/internal/core"
)

// Config configures a Service. The zero value is the default.
type Config struct {
	// JoinWait is how long a trigger waits for a job that another trigger has reserved but not yet created, before it
	// takes over; it does so at once if the job's id is older than that. Default 2 s.
	JoinWait time.Duration
	// JoinPoll is the interval at which it polls for that job. Default 20 ms.
	JoinPoll time.Duration
	// Logger receives log lines. Default: nothing is logged.
	Logger *slog.Logger
	// Metrics counts triggers; nil counts nothing.
	Metrics *Metrics
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Formats are the formats of the events of the types of repository.
	Formats map[core.RepositoryType]core.EventFormat
	// Sources configures the notifications of repositories, by their codes. A repository without an entry has the zero
	// Source.
	Sources map[string]Source
	// Batches stores many Requests at once; with nil they are stored one after the other.
	Batches BatchPublisher
	// Lists stores the ids of jobs; with nil IDs returns CodeUnsupported.
	Lists Lists
	// DeadLetters stores rejected events; Retry reads it. With nil no event is stored, and Retry, RetryAll and NewFeed return
	// CodeUnsupported.
	DeadLetters DeadLetters
	// DeadLetterIndex returns ids and counts of dead letters; with nil ids are left out and webhooks store dead letters
	// without limit.
	DeadLetterIndex DeadLetterIndex
	// Tracer continues the traces of the messages of topics; nil continues none.
	Tracer *span.Tracer
	// Served reports whether a process, which may have another configuration, consumes the Requests of a repository; with nil no other does.
	Served func(ctx context.Context, repository string) (bool, error)
	// Signatures detects repeated signed notifications; with nil each counts as the first.
	Signatures Signatures
}

// Source configures the notifications of one repository. The zero value accepts the events that name its code or no server.
type Source struct {
	// WebhookSecret is the key of the HMAC-SHA256 that a webhook notification must carry; empty for none.
	WebhookSecret string
	// Server is what events of the repository name as their server; empty for the repository's code.
	Server string
}

func (c Config) validate() error {
	if c.JoinWait < 0 || c.JoinPoll < 0 {
		return core.NewError(core.CodeInvalid, "join wait and poll must not be negative")
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.JoinWait == 0 {
		c.JoinWait = 2 * time.Second
	}
	if c.JoinPoll == 0 {
		c.JoinPoll = 20 * time.Millisecond
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Service turns triggers into Requests on the queue. It has no state except locks; any number of processes may each
// have one.
type Service struct {
	*retries

	deadLetterLocks keylock.Locks
	// storingLists counts the lists of ids of each repository that are being stored.
	storingLists map[string]*atomic.Int64
}

// sender resolves events to Requests and publishes them, and stores rejected events as dead letters.
type sender struct {
	repositories map[string]core.Repository
	publisher    core.Publisher
	cfg          Config
	events       *event.Parser
	arrivals     arrivals
	// unknown holds the unknown members of events that were logged, as format and name.
	unknown *cache.LRU[string, struct{}]
}

// maxUnknownLogged is the number of unknown members that are remembered as logged.
const maxUnknownLogged = 1000

// logUnknown logs the unknown members of an event from a source, once for each name and format: a misspelt member would change what
// is requested without a trace.
func (s *sender) logUnknown(e event.Event, source string) {
	for _, name := range e.Unknown {
		key := e.Format + " " + name
		if _, logged := s.unknown.Get(key); !logged {
			s.unknown.Put(key, struct{}{}, 1)
			s.cfg.Logger.Warn("an unknown member of an event is ignored", "source", source, "format", e.Format, "member", name)
		}
	}
}

// New returns a Service for the given repositories. CodeInvalid for a duplicate code.
func New(repositories []core.Repository, publisher core.Publisher, jobs JobStore, cells core.Cells, cfg Config) (*Service, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	byCode, storing := make(map[string]core.Repository, len(repositories)), make(map[string]*atomic.Int64, len(repositories))
	for _, r := range repositories {
		if _, twice := byCode[r.Code]; twice {
			return nil, core.NewError(core.CodeInvalid, fmt.Sprintf("repository %q is configured twice", r.Code))
		}
		byCode[r.Code], storing[r.Code] = r, new(atomic.Int64)
	}
	for code := range cfg.Sources {
		if _, known := byCode[code]; !known {
			return nil, core.NewError(core.CodeInvalid, fmt.Sprintf("a source is given for repository %q, which is not configured", code))
		}
	}
	send := &sender{
		repositories: byCode, publisher: publisher, cfg: cfg.withDefaults(),
		events: event.NewParser(cfg.Formats), unknown: cache.NewLRU[string, struct{}](maxUnknownLogged),
	}
	return &Service{retries: &retries{&runs{sender: send, jobs: jobs, cells: cells}}, storingLists: storing}, nil
}

// Record requests that one record is indexed or removed (kind) and returns the alias that its repository writes to.
// It returns nil only after the queue has stored the Request. An empty requestID is replaced by a new one. Errors:
// CodeNotFound for an unknown repository, CodeOverloaded or CodeUnavailable from the queue.
func (s *Service) Record(ctx context.Context, kind core.Kind, record core.RecordRef, requestID string) (indexName string, err error) {
	repo, err := configured(s.repositories, record.Repository())
	if err != nil {
		return "", err
	}
	r := core.Request{
		ID: orNewID(requestID), Kind: kind, Scope: core.ScopeRecord, Repository: repo.Code,
		Organization: record.Organization(), RecordID: record.ID(), Cause: core.CauseREST, ReceivedAt: s.now(),
	}
	s.receive(r.Repository, r.Cause, r.Kind)
	if err := s.publish(ctx, r); err != nil {
		return "", err
	}
	return repo.IndexName, nil
}

func (s *sender) repository(code string) (core.Repository, error) {
	if err := core.ValidID("repository", code); err != nil {
		return core.Repository{}, err
	}
	return configured(s.repositories, code)
}

// configured returns the repository with a code, or CodeNotFound.
func configured(repositories map[string]core.Repository, code string) (core.Repository, error) {
	repo, ok := repositories[code]
	if !ok {
		return core.Repository{}, core.RepositoryNotConfigured(code)
	}
	return repo, nil
}

func (s *sender) publish(ctx context.Context, r core.Request) error {
	err := s.publisher.Publish(ctx, r)
	if err != nil {
		return fmt.Errorf("publishing a %s request: %w", r.Scope, err)
	}
	return nil
}

func (s *sender) now() time.Time { return s.cfg.Now().UTC() }

// orNewID returns id, or a new time-ordered one if it is empty.
func orNewID(id string) string {
	if id != "" {
		return id
	}
	return newID()
}

// newID returns a UUID of version 7, so that ids sort by time. Reading randomness cannot fail since Go 1.24, so the
// version 4 fallback is never taken.
func newID() string {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.NewString()
	}
	return id.String()
}
