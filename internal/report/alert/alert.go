package alert

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
)

// Format is the form of a message.
type Format string

// The formats.
const (
	FormatJSON  Format = "json"
	FormatSlack Format = "slack"
)

// Target is one receiver of messages.
type Target struct {
	// URL receives each message with POST. It may be secret.
	URL    string
	Format Format
	// Kinds and Repositories select events; empty for all.
	Kinds        []Kind
	Repositories []string
	// MinInterval is the shortest time between two messages of one kind.
	MinInterval time.Duration
	// Token is sent as a bearer token, Secret is the key of the signature X-Signature-256; empty for none.
	Token, Secret string
	TLS           tlsconfig.Files
}

func (t Target) wants(e Event) bool {
	return (len(t.Kinds) == 0 || slices.Contains(t.Kinds, e.Kind)) &&
		(len(t.Repositories) == 0 || slices.Contains(t.Repositories, e.Repository))
}

// Host returns the host of the URL, which may be shown.
func (t Target) Host() string {
	u, err := url.Parse(t.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// Jobs are the stored jobs.
type Jobs interface {
	// LastRevision returns a revision that no later change of a job has.
	LastRevision(ctx context.Context) (uint64, error)
	// EachChangedAfter calls each with the state of every job that changed after a revision, in order, until it returns an error.
	EachChangedAfter(ctx context.Context, after uint64, each func(revision uint64, job core.Job) error) error
}

// Letters are the stored dead letters.
type Letters interface {
	// LastSequence returns the position of the last change.
	LastSequence(ctx context.Context) (uint64, error)
	// EachAfter calls each with the dead letters that were stored after a position and neither replaced nor removed since, in
	// order. It returns the position up to which it has read, also with an error.
	EachAfter(ctx context.Context, after uint64, each func(Letter)) (uint64, error)
}

// Letter is a dead letter that was stored.
type Letter struct {
	// Sequence is the position of the change, First that of the first dead letter that it replaces, Sequence if it replaces none.
	Sequence, First uint64
	StoredAt        time.Time
	ID              string
	Repository      string
	Reason          string
	// Read returns the dead letter; CodeNotFound when it was removed since.
	Read func(ctx context.Context) (core.DeadLetter, error)
}

// Pause is a repository that this process does not index for now.
type Pause struct {
	Repository, Reason string
	// Starting is true until this process has found out whether the repository can be indexed.
	Starting bool
}

// Deps are the dependencies of a Service; all are required.
type Deps struct {
	Cells   core.Cells
	Jobs    Jobs
	Letters Letters
	// Pauses returns the repositories that this process cannot index, except those with a paused job only.
	Pauses func() []Pause
}

// Config holds the optional settings; its zero value is the default.
type Config struct {
	// PublicURL is the URL of the server for links, without a slash at the end. Default: links are paths.
	PublicURL string
	// UserAgent is sent with each message.
	UserAgent string
	// Sign returns the signature of a body under a secret; required for targets with a secret.
	Sign func(secret string, body []byte) string
	// HTTP sends the messages; its CheckRedirect is not used. Default: a client that uses the environment's proxies.
	HTTP *http.Client
	// Logger receives log lines. Default: nothing is logged.
	Logger *slog.Logger
	// Metrics receives the counts; nil for none.
	Metrics *Metrics
	// Poll is how often events are collected, 1 s by default.
	Poll time.Duration
	// Takeover is how long the leader must be silent before another process takes over, 20 s by default.
	Takeover time.Duration
	// RetryMin and RetryMax bound the backoff after a failed attempt, 5 s and 10 min by default.
	RetryMin, RetryMax time.Duration
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	for setting, fallback := range map[*time.Duration]time.Duration{
		&c.Poll: time.Second, &c.Takeover: 20 * time.Second, &c.RetryMin: 5 * time.Second, &c.RetryMax: 10 * time.Minute,
	} {
		if *setting == 0 {
			*setting = fallback
		}
	}
	return c
}

// target is a Target with what identifies it.
type target struct {
	Target
	// key identifies it in the state, name in the log.
	key, name string
	sender    *sender
}

// Service collects events and sends messages about them.
type Service struct {
	targets []target
	deps    Deps
	cfg     Config
	log     *slog.Logger
	self    string

	cancel context.CancelFunc
	ended  chan struct{}
	sends  sync.WaitGroup
}

// New returns a Service for targets. CodeInvalid if there are none or a setting is negative.
func New(targets []Target, deps Deps, cfg Config) (*Service, error) {
	if len(targets) == 0 || deps.Cells == nil || deps.Jobs == nil || deps.Letters == nil || deps.Pauses == nil {
		return nil, core.NewError(core.CodeInternal, "making alerts: a target or a dependency is missing")
	}
	if min(cfg.Poll, cfg.Takeover, cfg.RetryMin, cfg.RetryMax) < 0 {
		return nil, core.NewError(core.CodeInternal, "making alerts: a duration is negative")
	}
	cfg = cfg.withDefaults()
	s := &Service{deps: deps, cfg: cfg, log: cfg.Logger, self: rand.Text()}
	same := make(map[string]int)
	for i, t := range targets {
		sum := sha256.Sum256([]byte(t.URL))
		key := hex.EncodeToString(sum[:8])
		same[key]++
		if n := same[key]; n > 1 {
			key = fmt.Sprintf("%s.%d", key, n)
		}
		sender, err := newSender(cfg, t.TLS)
		if err != nil {
			return nil, err
		}
		s.targets = append(s.targets, target{Target: t, sender: sender, key: key, name: fmt.Sprintf("alerts[%d] (%s)", i, t.Host())})
	}
	return s, nil
}

// Start collects the events from now on, or since the last process stopped, and returns at once. It must be called only once.
func (s *Service) Start(ctx context.Context) {
	w := newWorker(s)
	w.step(ctx)
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.ended = make(chan struct{})
	go func() {
		defer close(s.ended)
		w.run(ctx)
	}()
}

// Stop stops collecting, waits a moment for messages in flight, and lets another process continue. It blocks until then, or until ctx
// ends. It does nothing before Start.
func (s *Service) Stop(ctx context.Context) error {
	if s.cancel == nil {
		return nil
	}
	s.cancel()
	select {
	case <-s.ended:
		for _, t := range s.targets {
			t.sender.http.CloseIdleConnections()
		}
		return nil
	case <-ctx.Done():
		return core.WrapError(core.CodeUnavailable, "stopping the alerts", ctx.Err())
	}
}

// Probe returns the status with which a target answers HEAD, 0 for none, and why it would not take a message now, an empty reason if nothing
// speaks against it. The target gets no message. The texts contain neither URL nor credentials. CodeInvalid for files of TLS that cannot be used.
func Probe(ctx context.Context, t Target, cfg Config) (status int, reason, hint string, err error) {
	s, err := newSender(cfg.withDefaults(), t.TLS)
	if err != nil {
		return 0, "", "", err
	}
	defer s.http.CloseIdleConnections()
	status, reason, hint = s.probe(ctx, t)
	return status, reason, hint, nil
}

// TestResult is the result of a test message.
type TestResult struct {
	Host   string
	Status int
	Body   string
	// Err is nil when the receiver took the message.
	Err error
}

// Test sends a test message to each target, once, and returns the results in the order of the targets.
func Test(ctx context.Context, targets []Target, cfg Config) []TestResult {
	cfg = cfg.withDefaults()
	results := make([]TestResult, len(targets))
	var sends sync.WaitGroup
	for i, t := range targets {
		sends.Go(func() {
			now := time.Now().UTC()
			m := newMessage(rand.Text(), kindTest, Summary{Count: 1, FirstAt: now, LastAt: now}, cfg.PublicURL)
			results[i].Host = t.Host()
			body, err := m.encode(t.Format)
			if err != nil {
				results[i].Err = err
				return
			}
			s, err := newSender(cfg, t.TLS)
			if err != nil {
				results[i].Err = err
				return
			}
			defer s.http.CloseIdleConnections()
			answer, err := s.send(ctx, t, body)
			results[i].Status, results[i].Body, results[i].Err = answer.Status, answer.Body, err
		})
	}
	sends.Wait()
	return results
}
