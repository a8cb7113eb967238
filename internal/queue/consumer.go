package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/base/retry"
	"tutti/internal/core"
	"tutti/internal/queue/natsconn"
	"tutti/internal/queue/natsread"
	"tutti/internal/queue/subjects"
)

const (
	defaultMaxAckPending = 1000
	defaultAckWait       = 30 * time.Second
	defaultMaxDeliver    = 20

	// maxNameToken is the longest token that is part of a durable consumer's name: the server takes 255 bytes.
	maxNameToken = 200
	// moveRetryDelay is the redelivery delay of a message that could not be moved to the dead letters.
	moveRetryDelay = 10 * time.Second
)

// ConsumerConfig configures a durable consumer. The zero value is the default.
type ConsumerConfig struct {
	// MaxAckPending is the number of messages that all processes together may have in flight; 0 for 1000.
	MaxAckPending int
	// AckWait is how long a message may be in flight without Ack or InProgress; 0 for 30 s.
	AckWait time.Duration
	// MaxDeliver is the number of deliveries after which a message that never ended becomes a dead letter; 0 for 20. Of
	// the second half, only deliveries that Fetch returned count.
	MaxDeliver int
}

func (c ConsumerConfig) withDefaults() ConsumerConfig {
	if c.MaxAckPending == 0 {
		c.MaxAckPending = defaultMaxAckPending
	}
	if c.AckWait == 0 {
		c.AckWait = defaultAckWait
	}
	if c.MaxDeliver == 0 {
		c.MaxDeliver = defaultMaxDeliver
	}
	return c
}

func (c ConsumerConfig) validate() error {
	if c.MaxAckPending < 1 || c.AckWait < 0 || c.MaxDeliver < 1 {
		return core.NewError(core.CodeInvalid, "the limits of a consumer must be positive")
	}
	return nil
}

// Consumer is this process's subscription to one durable consumer, which it shares with other processes.
type Consumer struct {
	queue      *Queue
	repository string
	class      core.Class
	// label names the consumer in metrics and logs.
	label string
	cfg   jetstream.ConsumerConfig
	// maxDeliver is ConsumerConfig.MaxDeliver.
	maxDeliver int
	// fetchLock holds one token; its holder uses the puller.
	fetchLock chan struct{}
	puller    *natsread.Puller
	// closed is closed by Close and ends a running Fetch.
	closed chan struct{}
	// serves answers other processes that this one consumes the repository; nil for core.ClassRetries.
	serves *nats.Subscription
}

// Consumer creates or updates the durable consumer of a class of a repository's Requests and subscribes to it; that of
// core.ClassRetries is of no repository.
// It is retried until Config.StartTimeout, then CodeUnavailable.
func (q *Queue) Consumer(
	ctx context.Context, repository string, class core.Class, cfg ConsumerConfig,
) (*Consumer, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	label, description := repository+"/"+string(class), "The "+string(class)+" of the repository "+repository
	if class == core.ClassRetries {
		repository, label, description = "", string(class), "The "+string(class)+" of dead letters"
	} else if err := core.ValidKey("repository", repository); err != nil {
		return nil, err
	} else {
		q.labels.add(repository)
	}
	filters, err := subjects.ClassFilters(repository, class)
	if err != nil {
		return nil, err
	}
	q.deadLetters.UpdateMetric()
	c := &Consumer{
		queue: q, repository: repository, maxDeliver: cfg.MaxDeliver, class: class, label: label,
		fetchLock: make(chan struct{}, 1), closed: make(chan struct{}),
		cfg: jetstream.ConsumerConfig{
			Durable:        durableName(repository, class),
			Description:    description,
			FilterSubjects: filters,
			AckPolicy:      jetstream.AckExplicitPolicy,
			AckWait:        cfg.AckWait,
			MaxDeliver:     -1, // admit counts the deliveries that Fetch returned
			MaxAckPending:  cfg.MaxAckPending,
			ReplayPolicy:   jetstream.ReplayInstantPolicy,
		},
	}
	doing := "setting up the consumer " + c.label
	if err := q.RetryStart(ctx, func(ctx context.Context) error { return natsconn.WrapError(doing, c.ensure(ctx)) }); err != nil {
		return nil, err
	}
	if c.puller, err = natsread.NewPuller(q.conn, streamRequests, c.cfg.Durable); err != nil {
		return nil, natsconn.WrapError(doing, err)
	}
	c.puller.Closed = c.closed
	if err := c.announce(); err != nil {
		c.puller.Close()
		return nil, err
	}
	q.mu.Lock()
	q.consumers[c] = struct{}{}
	q.mu.Unlock()
	return c, nil
}

// durableName returns the name of a durable consumer.
func durableName(repository string, class core.Class) string {
	return string(class) + "-" + nameToken(repository)
}

// nameToken returns the token of a repository in names; a code that is too long for a name is replaced by its hash.
func nameToken(repository string) string {
	token := subjects.EncodeToken(repository)
	if len(token) > maxNameToken {
		sum := sha256.Sum256([]byte(repository))
		token = "sha256-" + hex.EncodeToString(sum[:])
	}
	return token
}

// cutDurableName returns the token of the repository in a consumer's name, if it may be one of durableName.
func cutDurableName(name string) (token string, ok bool) {
	for _, class := range classes() {
		if token, ok = strings.CutPrefix(name, string(class)+"-"); ok {
			return token, true
		}
	}
	return "", false
}

func classes() []core.Class {
	return []core.Class{core.ClassRecords, core.ClassBatches, core.ClassPages, core.ClassRuns}
}

// ensure creates or updates the durable consumer.
func (c *Consumer) ensure(ctx context.Context) error {
	old, err := c.queue.requests.Consumer(ctx, c.cfg.Durable)
	if err == nil && old.CachedInfo().Config.MaxDeliver > 0 { // a new consumer also delivers the messages that this one no longer delivers
		err = c.queue.requests.DeleteConsumer(ctx, c.cfg.Durable)
	}
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return err
	}
	_, err = c.queue.requests.CreateOrUpdateConsumer(ctx, c.cfg)
	return err
}

// Fetch returns at most maxMessages messages of about maxBytes together (0 for no limit), as soon as there is one; or
// none when wait has passed. Messages that cannot be decoded are moved to the dead letters and not returned.
// CodeUnavailable when the queue does not answer or ctx ends; a later call continues. Concurrent calls wait for each
// other.
func (c *Consumer) Fetch(ctx context.Context, maxMessages, maxBytes int, wait time.Duration) ([]core.Message, error) {
	select {
	case c.fetchLock <- struct{}{}:
		defer func() { <-c.fetchLock }()
	case <-ctx.Done():
		return nil, natsconn.WrapError("fetching requests", ctx.Err())
	}
	if c.isClosed() {
		return nil, core.NewError(core.CodeUnavailable, "fetching requests: the consumer is closed")
	}
	messages, err := c.fetch(ctx, natsread.Budget{Messages: maxMessages, Bytes: maxBytes}, time.Now().Add(wait))
	return messages, natsconn.WrapError("fetching requests", err)
}

func (c *Consumer) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// fetch pulls until there is a valid message or the deadline has passed.
func (c *Consumer) fetch(ctx context.Context, want natsread.Budget, deadline time.Time) ([]core.Message, error) {
	for {
		raw, err := c.puller.Next(ctx, want, max(time.Until(deadline), 0))
		if errors.Is(err, natsread.ErrConsumerLost) {
			c.queue.log.Warn("consumer lost, creating it again", "consumer", c.label, "err", err)
			err = natsconn.Resend(ctx, c.ensure)
			if err == nil && time.Until(deadline) > 0 {
				if err = retry.Sleep(ctx, natsread.BusyPause); err == nil {
					continue
				}
			}
		}
		if err != nil {
			return nil, err
		}
		var messages []core.Message
		if age := c.puller.BufferedFor; age <= c.redeliveryAge() {
			messages = c.decode(ctx, raw, age > c.cfg.AckWait/3)
		} // else they are due for redelivery, or already redelivered
		if len(messages) > 0 || len(raw) == 0 || time.Until(deadline) <= 0 {
			return messages, nil
		}
	}
}

// redeliveryAge returns the age from which another delivery of a message may be in flight if nothing was sent to the
// queue for it.
func (c *Consumer) redeliveryAge() time.Duration { return c.cfg.AckWait * 2 / 3 }

// decode decodes delivered messages; those that cannot be decoded are moved to the dead letters. With resetAckWait,
// the ack wait of the others starts again.
func (c *Consumer) decode(ctx context.Context, raw []*nats.Msg, resetAckWait bool) []core.Message {
	messages := make([]core.Message, 0, len(raw))
	var admitErr error // while the queue does not answer, each call of admit waits for its timeout
	for _, m := range raw {
		meta, err := m.Metadata()
		if err != nil {
			c.queue.log.Error("message without metadata", "consumer", c.label, "err", err)
			continue
		}
		if meta.NumDelivered > 1 {
			c.queue.metrics.countRedelivery(c.label)
		}
		r, err := decodeRequest(m.Subject, m.Data)
		if err != nil {
			c.moveUnreadable(ctx, m, err)
			continue
		}
		own := &message{
			nc: c.queue.conn.NC, together: c.queue.together, log: c.queue.log, subject: m.Subject, reply: m.Reply, request: r, version: versionOf(r, meta.Timestamp),
			sequence: meta.Sequence.Stream, storedAt: meta.Timestamp, deliveries: int(meta.NumDelivered),
		}
		if admitErr != nil && own.deliveries > c.maxDeliver/2 {
			continue
		}
		var admitted bool
		if admitted, admitErr = c.admit(ctx, m, own); admitErr != nil {
			c.queue.log.Warn("messages are redelivered after their ack wait", "consumer", c.label, "err", admitErr)
		}
		if !admitted {
			continue
		}
		if resetAckWait {
			if err := own.InProgress(); err != nil {
				c.queue.log.Debug("ack wait of a buffered message not extended", "consumer", c.label, "err", err)
			}
		}
		messages = append(messages, own)
	}
	return messages
}

// versionOf returns the version of a Request that was stored at storedAt.
func versionOf(r core.Request, storedAt time.Time) core.Version {
	if stored := core.Version(storedAt.UnixNano()); r.AsOf == 0 || r.AsOf > stored {
		return stored
	}
	return r.AsOf
}

// moveUnreadable moves a message that cannot be processed to the dead letters; if that fails, the message is
// redelivered.
func (c *Consumer) moveUnreadable(ctx context.Context, m *nats.Msg, cause error) {
	letter := unreadableDeadLetter(m.Subject, m.Data, core.ReasonNotUnderstood, core.MessageOf(cause))
	err := c.queue.deadLetters.PutAt(ctx, subjects.OfUnreadable(letter, m.Subject), letter)
	if err == nil {
		err = sendAck(ctx, c.queue.conn.NC, m.Reply, "+TERM")
	}
	if err == nil {
		return
	}
	c.queue.log.Warn("message not moved to the dead letters", "consumer", c.label, "err", err)
	if err := c.queue.conn.NC.Publish(m.Reply, nakPayload(moveRetryDelay)); err != nil {
		c.queue.log.Warn("message not requeued", "consumer", c.label, "err", err)
	}
}

// unreadableDeadLetter returns the dead letter of a message whose body is not a Request; its subject names the
// repository.
func unreadableDeadLetter(subject string, data []byte, reason, hint string) core.DeadLetter {
	parts := subjects.Parse(subject)
	kept := core.NewDeadLetterDocument(data)
	return core.DeadLetter{
		Repository: parts.Repository, Organization: parts.Organization, RecordID: parts.RecordID, JobID: parts.JobID,
		Reason: reason, Hint: hint, Attempts: 1,
		Document: kept.Bytes, Size: kept.Size, SHA256: kept.SHA256, Truncated: kept.Truncated,
	}
}

// requestDeadLetter returns the dead letter of a Request.
func requestDeadLetter(r core.Request, reason, hint string, attempts int) core.DeadLetter {
	return core.DeadLetter{
		Repository: r.Repository, Organization: r.Organization, RecordID: r.RecordID, JobID: r.JobID,
		Reason: reason, Hint: hint, Attempts: attempts, Request: &r,
	}
}

// Close ends a running Fetch and requeues the messages that were delivered and not fetched. The durable consumer
// stays.
func (c *Consumer) Close() {
	c.queue.mu.Lock()
	_, open := c.queue.consumers[c]
	delete(c.queue.consumers, c)
	c.queue.mu.Unlock()
	if !open {
		return
	}
	close(c.closed)
	if c.serves != nil {
		_ = c.serves.Unsubscribe() // only a closed connection fails, and with it the subscription has ended
	}
	c.fetchLock <- struct{}{}
	defer func() { <-c.fetchLock }()
	for _, m := range c.puller.Close() {
		if time.Since(m.Since) > c.redeliveryAge() { // the server would apply a NAK to the newer delivery
			continue
		}
		if err := c.queue.conn.NC.Publish(m.Reply, nakPayload(0)); err != nil {
			c.queue.log.Debug("message not requeued", "consumer", c.label, "err", err)
			return
		}
	}
}
