package natsread

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/base/retry"
	"tutti/internal/queue/natsconn"
)

const (
	// maxPull is the largest number of messages in one pull request.
	maxPull = 1024
	// inboxSize holds the messages of two pulls, and status messages between them.
	inboxSize = 2*maxPull + 256
	// batchGap is how long the next message of a pull may take after the previous one before the batch is returned. It
	// matters only where the server does not end the pull: MaxAckPending is reached, or the server is busy.
	batchGap = 10 * time.Millisecond
	// answerTimeout is how long the server may take to end an expired pull.
	answerTimeout = 5 * time.Second
	// maxHeartbeat is the longest heartbeat interval of a pull.
	maxHeartbeat = 5 * time.Second
	// drainTimeout is how long messages in transit may take to arrive when a subscription ends.
	drainTimeout = time.Second
	// BusyPause is the pause before repeating a pull that the server rejected because too many are waiting.
	BusyPause = 10 * time.Millisecond
)

var (
	// ErrConsumerLost means that the server does not know the consumer, or does not know this pull.
	ErrConsumerLost = errors.New("the queue does not have the consumer any more")
	// errConnectionChanged: the connection was lost or restored while a strict puller waited.
	errConnectionChanged = errors.New("the connection to the queue changed")
	// errClosed: the owner closed the puller.
	errClosed = errors.New("the consumer was closed")
	// errNotConnected: there is no connection.
	errNotConnected = errors.New("the queue is not connected")
	// errBudgetTooSmall: the next message is larger than the bytes that the pull allowed.
	errBudgetTooSmall = errors.New("the next message is over the byte budget")
)

// Puller requests messages from one pull consumer, by the protocol of ADR-15 of NATS ("JetStream Subscribe
// Workflow"). The library's Fetch is not used because it waits for a whole batch, loses messages that arrive after a
// cancelled call until their ack wait ends, and cannot distinguish an empty consumer from a silent server.
//
// The server answers a pull with the messages it has, or waits for the first one, and then ends the pull. At most one
// pull is open; messages that arrive between calls are returned first by the next call. A puller must not be used by
// two goroutines at once.
type Puller struct {
	conn    *natsconn.Conn
	subject string
	inbox   string
	sub     *nats.Subscription
	Arrived chan *nats.Msg
	// buffered holds messages that arrived and did not fit into earlier batches.
	buffered []BufferedMessage
	// strict makes a lost connection an error instead of a new pull.
	strict bool
	// Closed ends a call when it is closed; nil for never.
	Closed <-chan struct{}

	// pulls counts the pull requests; reply is the reply subject of the last one, remaining how many of its messages are
	// outstanding.
	pulls     uint64
	open      bool
	reply     string
	remaining int
	// expires is when the server ends the open pull; lastHeard is when the server last sent something, idleTimeout how
	// long it may send nothing.
	expires      time.Time
	lastHeard    time.Time
	idleTimeout  time.Duration
	disconnected <-chan struct{}
	// IdleSince is when the last call ended; bufferedFor is how long the messages of the last batch may have been
	// buffered.
	IdleSince   time.Time
	BufferedFor time.Duration
}

// BufferedMessage is a message that is in no batch yet. It arrived at or after since.
type BufferedMessage struct {
	*nats.Msg
	Since time.Time
}

// pullRequest is the body of a pull.
type pullRequest struct {
	Batch     int           `json:"batch"`
	MaxBytes  int           `json:"max_bytes,omitempty"`
	NoWait    bool          `json:"no_wait"`
	Expires   time.Duration `json:"expires,omitempty"`
	Heartbeat time.Duration `json:"idle_heartbeat,omitempty"`
}

// NewPuller subscribes to a consumer of a stream.
func NewPuller(c *natsconn.Conn, stream, consumer string) (*Puller, error) {
	p := &Puller{
		conn:    c,
		subject: jetstream.DefaultAPIPrefix + "CONSUMER.MSG.NEXT." + stream + "." + consumer,
		inbox:   c.NC.NewInbox() + ".",
		Arrived: make(chan *nats.Msg, inboxSize), IdleSince: time.Now(),
	}
	var err error
	if p.sub, err = c.NC.ChanSubscribe(p.inbox+"*", p.Arrived); err != nil {
		return nil, fmt.Errorf("subscribing to a consumer: %w", err)
	}
	return p, nil
}

// Close ends the subscription and returns all messages that were not taken, including those in transit: the server
// counts them as in flight and would not redeliver them before their ack wait ends.
func (p *Puller) Close() []BufferedMessage {
	err := p.sub.Drain()
	_ = err // Only a closed connection fails, and with it the subscription has ended.
	if p.conn.NC.IsConnected() {
		err = p.conn.NC.FlushTimeout(drainTimeout)
		_ = err // What did not arrive by then is redelivered after the ack wait.
	}
	p.bufferArrived()
	return p.buffered
}

// Budget limits one call.
type Budget struct {
	Messages int
	// Bytes limits the sum of the message sizes, 0 for no limit. The first message is returned whatever its size.
	Bytes int
}

// batch collects messages up to its budget.
type batch struct {
	Budget
	messages []*nats.Msg
	size     int
}

func (b *batch) full() bool {
	return len(b.messages) >= b.Messages || b.Bytes > 0 && b.size >= b.Bytes
}

// fits reports whether m may be added; the first message always may.
func (b *batch) fits(m *nats.Msg) bool {
	return len(b.messages) == 0 || b.Bytes == 0 || b.size+m.Size() <= b.Bytes
}

func (b *batch) add(m *nats.Msg) {
	b.messages = append(b.messages, m)
	b.size += m.Size()
}

// Next returns messages as soon as there is one, or none when wait has passed; with a wait of 0 it returns what is
// available now.
func (p *Puller) Next(ctx context.Context, want Budget, wait time.Duration) ([]*nats.Msg, error) {
	want.Messages = min(max(want.Messages, 1), maxPull)
	got := &batch{Budget: want}
	p.BufferedFor = 0
	defer func() { p.IdleSince = time.Now() }()
	p.takeBuffered(got)
	if len(got.messages) > 0 {
		return got.messages, nil
	}
	p.lastHeard = time.Now()
	deadline := p.lastHeard.Add(max(wait, 0))
	for mayAsk := true; ; {
		if !p.open {
			if !mayAsk && time.Until(deadline) <= 0 {
				return nil, nil
			}
			if err := p.Open(ctx, want, deadline); err != nil {
				return nil, err
			}
			mayAsk = false
		}
		err := p.receive(ctx, got, deadline)
		switch {
		case len(got.messages) > 0:
			// An error after the messages is returned by the next call.
			return got.messages, nil
		case errors.Is(err, errBudgetTooSmall):
			want, mayAsk = Budget{Messages: 1}, true
			continue
		case err != nil:
			return nil, err
		case time.Until(deadline) <= 0:
			return nil, nil
		}
		if err := retry.Sleep(ctx, min(BusyPause, time.Until(deadline))); err != nil {
			return nil, err
		}
	}
}

// takeBuffered takes the messages that arrived between calls, as long as they have the same age.
func (p *Puller) takeBuffered(got *batch) {
	p.bufferArrived()
	taken := 0
	for _, a := range p.buffered {
		if got.full() || !got.fits(a.Msg) || !a.Since.Equal(p.buffered[0].Since) {
			break
		}
		got.add(a.Msg)
		p.BufferedFor = time.Since(a.Since)
		taken++
	}
	p.buffered = slices.Delete(p.buffered, 0, taken)
}

// bufferArrived moves arrived messages to the buffer, with the time since when they may have been here.
func (p *Puller) bufferArrived() {
	for {
		select {
		case m := <-p.Arrived:
			if err := p.handle(m, nil); err != nil {
				p.open = false
			}
		default:
			return
		}
	}
}

// Open sends a pull request that the server keeps open until deadline.
func (p *Puller) Open(ctx context.Context, want Budget, deadline time.Time) error {
	down, connected := p.conn.AwaitConnected(ctx, deadline, p.Closed)
	if err := ctx.Err(); err != nil {
		return err
	}
	if !connected {
		return errNotConnected
	}
	wait := max(time.Until(deadline), 0)
	req := pullRequest{Batch: want.Messages, MaxBytes: want.Bytes, NoWait: true, Expires: wait}
	p.idleTimeout = wait + answerTimeout
	if wait >= time.Second {
		req.Heartbeat = min(wait/2, maxHeartbeat)
		p.idleTimeout = 2*req.Heartbeat + time.Second
	}
	body, err := json.Marshal(req)
	if err != nil {
		return err
	}
	p.pulls++
	p.reply = p.inbox + strconv.FormatUint(p.pulls, 10)
	if err := p.conn.NC.PublishRequest(p.subject, p.reply, body); err != nil {
		return err
	}
	p.open, p.remaining, p.disconnected = true, want.Messages, down
	p.expires, p.lastHeard = deadline, time.Now()
	return nil
}

// receive takes messages until the pull has ended, the batch is full, or no more arrive within batchGap. A nil error
// without messages means that there were none.
func (p *Puller) receive(ctx context.Context, got *batch, deadline time.Time) error {
	timer := time.NewTimer(p.receiveTimeout(got, deadline))
	defer timer.Stop()
	for p.open && !got.full() && len(p.buffered) == 0 {
		select {
		case m := <-p.Arrived:
			p.lastHeard = time.Now()
			if err := p.handle(m, got); err != nil {
				p.open = false
				return err
			}
			timer.Reset(p.receiveTimeout(got, deadline))
		case <-p.disconnected:
			p.open = false
			if p.strict {
				return errConnectionChanged
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-p.Closed:
			return errClosed
		case <-timer.C:
			if len(got.messages) > 0 {
				return nil
			}
			if p.expires.After(deadline) && time.Until(deadline) <= 0 {
				return nil
			}
			if time.Since(p.lastHeard) >= p.idleTimeout || time.Since(p.expires) >= answerTimeout {
				p.open = false
				return fmt.Errorf("%w: no answer", ErrConsumerLost)
			}
			timer.Reset(p.receiveTimeout(got, deadline))
		}
	}
	return nil
}

// receiveTimeout is how long receive waits for the next message of the server.
func (p *Puller) receiveTimeout(got *batch, deadline time.Time) time.Duration {
	if len(got.messages) > 0 {
		return batchGap
	}
	end := p.expires.Add(answerTimeout)
	if p.expires.After(deadline) {
		// The pull is of an earlier call and stays open after this one.
		end = deadline
	}
	return max(min(p.idleTimeout-time.Since(p.lastHeard), time.Until(end)), time.Millisecond)
}

// handle adds a message to got, or to the buffer when there is no batch or no room in it, or acts on a status
// message.
func (p *Puller) handle(m *nats.Msg, got *batch) error {
	since := p.IdleSince
	if got != nil {
		since = time.Now()
	}
	status := statusOf(m)
	if status == "" {
		if p.remaining--; p.remaining <= 0 {
			p.open = false
		}
		if got != nil && got.fits(m) {
			got.add(m)
		} else {
			p.buffered = append(p.buffered, BufferedMessage{m, since})
		}
		return nil
	}
	if m.Subject != p.reply || status == "100" {
		return nil
	}
	p.open = false
	switch description := m.Header.Get("Description"); {
	case status == "404", status == "408":
		return nil
	case description == "Message Size Exceeds MaxBytes":
		return errBudgetTooSmall
	case status == "409" && (description == "Batch Completed" || description == "Leadership Change" ||
		description == "Exceeded MaxWaiting" || description == "Server Shutdown"):
		if p.strict {
			// None of these says that there are no messages.
			return errConnectionChanged
		}
		return nil
	default:
		return fmt.Errorf("%w: %s %s", ErrConsumerLost, status, description)
	}
}

// statusOf returns the status code of a status message of the server, "" for a message of the stream.
func statusOf(m *nats.Msg) string {
	if len(m.Data) != 0 || len(m.Header) == 0 {
		return ""
	}
	return m.Header.Get("Status")
}
