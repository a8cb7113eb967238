package kafka

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"tutti/ingest/kafka/connection"
	"tutti/internal/base/retry"
	"tutti/internal/core"
)

// Handler handles the messages of a topic.
type Handler interface {
	// Handle handles a batch, in order for each partition, and returns nil only when each message is stored; the batch's
	// offsets are committed only then. After an error the same batch, or a part of it, is passed again, even if some of it
	// was stored. Neither messages nor their bytes may be used after the call.
	Handle(ctx context.Context, messages []core.TopicMessage) error
	// Missed handles messages that the topic lost before they were read. It returns nil only when what replaces them is
	// stored: reading continues behind them only then. After an error, or a crash, the same gap may be passed again.
	Missed(ctx context.Context, gap core.TopicGap) error
}

// Reader reads one topic with one consumer group and passes its messages to a Handler, at least once. It does so in sessions, each with
// a client of its own: what a client cannot recover from ends a session, and the next one begins as a restarted process does.
type Reader struct {
	cfg        Config
	handler    Handler
	connection *connection.Connection
	state      state

	mu      sync.Mutex
	session *session
	closed  bool

	stopReading  context.CancelFunc // ends polling and waiting
	stopHandling context.CancelFunc // cancels the current batch as well
	done         chan struct{}
}

// New returns a Reader. CodeInvalid when cfg is not valid.
func New(cfg Config, handler Handler) (*Reader, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	to, err := connection.New(cfg.Connection)
	if err != nil {
		return nil, err
	}
	r := &Reader{cfg: cfg.withDefaults(), handler: handler, connection: to}
	r.state = state{reader: r, shown: errNotRunning()}
	if err := kgo.ValidateOpts((&session{Reader: r, timeout: r.cfg.SessionTimeout}).options()...); err != nil {
		return nil, core.WrapError(core.CodeInvalid, "the settings of the Kafka reader are not valid", err)
	}
	return r, nil
}

func errNotRunning() error {
	return core.NewError(core.CodeUnavailable, "the Kafka reader is not running")
}

// Start starts reading and returns at once: brokers that do not answer are retried without limit, which Health
// reports. It must be called only once. The values of ctx are used, its end is ignored.
func (r *Reader) Start(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session != nil || r.closed {
		return core.NewError(core.CodeConflict, "the Kafka reader was started already")
	}
	handling, stopHandling := context.WithCancel(context.WithoutCancel(ctx))
	r.state.start(r.errWaiting(r.cfg.SessionTimeout)) // before the client, which may be assigned partitions at once
	first, err := r.newSession(handling, r.cfg.SessionTimeout)
	if err != nil {
		stopHandling()
		r.state.stop()
		return err
	}
	r.session = first
	reading, stopReading := context.WithCancel(handling)
	r.stopReading, r.stopHandling, r.done = stopReading, stopHandling, make(chan struct{})
	go func() {
		defer close(r.done)
		r.run(reading, handling, first)
	}()
	return nil
}

// longSession is how long a session lasts that the next one follows without a pause.
const longSession = time.Minute

// run runs sessions until reading ends, and leaves the last one to be closed by Stop.
func (r *Reader) run(reading, handling context.Context, s *session) {
	for failures := 0; ; failures++ {
		began := time.Now()
		err := s.run(reading, handling)
		if reading.Err() != nil {
			return
		}
		s.state.noteWaiting(s.errWaiting(s.timeout))
		leaving, cancel := context.WithTimeout(reading, r.cfg.CommitTimeout)
		s.close(leaving)
		cancel()
		if time.Since(began) > longSession {
			failures = 0
		}
		if retry.Sleep(reading, retry.Delay(failures, r.cfg.RetryMin, r.cfg.RetryMax)) != nil {
			return
		}
		if s, err = r.newSession(handling, s.nextTimeout(err)); err != nil {
			r.cfg.Logger.Error("a topic is no longer read", "topic", r.cfg.Topic, "err", err) // not expected: New has validated its options
			return
		}
		r.mu.Lock()
		r.session = s
		r.mu.Unlock()
	}
}

// Stop ends reading: the current batch is finished and committed, the group is left. If ctx ends first, the batch is
// cancelled, to be read again by the next owner of its partition, and Stop returns an error shortly after. A stopped
// Reader cannot be started again.
func (r *Reader) Stop(ctx context.Context) error {
	r.mu.Lock()
	idle := r.session == nil || r.closed
	r.closed = true
	r.mu.Unlock()
	if idle {
		return nil
	}
	r.stopReading()
	var err error
	select {
	case <-r.done:
	case <-ctx.Done():
		err = core.WrapError(core.CodeUnavailable, "stopping the Kafka reader: the current batch was cancelled", ctx.Err())
		r.stopHandling()
		<-r.done
	}
	leaving, cancel := context.WithTimeout(ctx, r.cfg.CommitTimeout)
	defer cancel()
	r.session.close(leaving)
	r.stopHandling()
	r.state.stop()
	return err
}

// Health returns nil while the brokers answer, the topic is read and its offsets are committed. Its errors are CodeUnavailable,
// with a message that is safe to display and a hint where there is one. The metric tutti_kafka_up is 1 while Health returns nil, and
// each change of its message is logged once.
func (r *Reader) Health() error { return r.state.health() }

// missed passes a gap to the handler, and logs and counts it when it is handled.
func (r *Reader) missed(ctx context.Context, gap core.TopicGap) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.HandleTimeout)
	defer cancel()
	if err := r.handler.Missed(ctx, gap); err != nil {
		return core.WrapError(core.CodeUnavailable, gap.Reason+", and what replaces them cannot be stored: "+core.MessageOf(err), err)
	}
	r.cfg.Metrics.addMissed(r.cfg.Topic, gap.Offsets)
	r.cfg.Logger.WarnContext(ctx, "messages of a topic were lost before they were read", "topic", r.cfg.Topic, "group", r.cfg.Group,
		"offsets", gap.Offsets, "reason", gap.Reason)
	return nil
}
