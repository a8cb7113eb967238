package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"tutti/internal/base/retry"
	"tutti/internal/core"
)

// session is a client of the topic and what it has read.
type session struct {
	*Reader

	timeout time.Duration // Config.SessionTimeout, or longer where the brokers reject that
	client  *kgo.Client
	admin   *kadm.Client
	// ready is closed when client and admin are set: callbacks of the client may run before.
	ready            chan struct{}
	closing          sync.Once
	cutOff           context.CancelFunc // ends the requests of client
	rebalancePending rebalanceSignal
	end              context.CancelCauseFunc // ends the session; its cause says why

	mu          sync.Mutex
	uncommitted map[int32]position // what is stored and not yet committed, by partition
	failures    int                // refused commits since the last accepted one
	nextCommit  time.Time          // not before then after a refused one
	member      string             // the group's id of this client, since its partitions were assigned; "" while it has none
	topicID     kadm.TopicID       // the topic that this session reads; zero until a broker has told it
	fetched     map[int32]string   // the metadata of the commits that were last read, by partition
}

// position is an offset to commit, with the topic that it is of.
type position struct {
	offset  int64
	epoch   int32
	topicID kadm.TopicID
}

// errEnded ends a session that the next one repairs.
var errEnded = errors.New("the session must begin anew")

// newSession returns a session whose client connects in the background.
func (r *Reader) newSession(handling context.Context, timeout time.Duration) (*session, error) {
	s := &session{Reader: r, timeout: timeout, ready: make(chan struct{}), rebalancePending: make(rebalanceSignal, 1), uncommitted: map[int32]position{}, fetched: map[int32]string{}}
	ctx, cutOff := context.WithCancel(handling)
	client, err := kgo.NewClient(append(s.options(), kgo.WithContext(ctx))...)
	if err != nil {
		cutOff()
		return nil, core.WrapError(core.CodeInvalid, "starting the Kafka reader", err)
	}
	s.cutOff = cutOff
	s.client, s.admin = client, kadm.NewClient(client)
	close(s.ready)
	return s, nil
}

// nextTimeout returns the session timeout of the session after one that ended with err.
func (s *session) nextTimeout(err error) time.Duration {
	if !errors.Is(err, kerr.InvalidSessionTimeout) || s.timeout >= maxSessionTimeout {
		return s.timeout
	}
	s.cfg.Logger.Info("the brokers reject the session timeout; one twice as long is tried, after which another process takes over from one "+
		"that has vanished", "topic", s.cfg.Topic, "group", s.cfg.Group, "rejected", s.timeout)
	return 2 * s.timeout
}

// run reads until reading ends or the session must end, and returns why.
func (s *session) run(reading, handling context.Context) error {
	reading, end := context.WithCancelCause(reading)
	s.mu.Lock()
	s.end = end
	s.mu.Unlock()
	var checks sync.WaitGroup
	checks.Go(func() { s.runChecks(reading) })
	s.read(reading, handling)
	end(nil)
	checks.Wait()
	return context.Cause(reading)
}

// endWith ends the session. It is called by callbacks of the client too, which may run before run does.
func (s *session) endWith(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		s.end(err)
	}
}

// stopGrace is how long the brokers may take to answer a request of a stop: one that is alive answers within milliseconds.
const stopGrace = 2 * time.Second

// whileStopping returns ctx, which ends stopGrace after reading has ended.
func whileStopping(ctx, reading context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	unwatch := context.AfterFunc(reading, func() {
		if retry.Sleep(ctx, stopGrace) == nil {
			cancel()
		}
	})
	return ctx, func() { unwatch(); cancel() }
}

// close leaves the group, so that the others of it take over at once: they would wait for the session timeout otherwise. It takes little longer
// than stopGrace, also when the brokers do not answer.
func (s *session) close(ctx context.Context) {
	s.closing.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, stopGrace)
		defer cancel()
		if left := s.client.LeaveGroupContext(ctx); left != nil {
			s.cfg.Logger.InfoContext(ctx, "leaving a consumer group", "topic", s.cfg.Topic, "group", s.cfg.Group, "err", left)
		}
		s.cutOff()
		s.client.CloseAllowingRebalance()
		s.client.AllowRebalance() // of the two leaves, this one's and Close's, the second may still be blocked
	})
}

// read polls and delivers until reading ends; the current batch is then finished, until handling ends.
func (s *session) read(reading, handling context.Context) {
	for reading.Err() == nil {
		s.rebalancePending.clear()
		fetches := s.poll(reading)
		s.process(reading, handling, fetches)
		s.client.AllowRebalance()
	}
}

// poll waits for messages, until a pending commit is due or could become pending.
func (s *session) poll(ctx context.Context) kgo.Fetches {
	ctx, cancel := context.WithTimeout(ctx, s.untilCommit())
	defer cancel()
	return s.client.PollRecords(ctx, s.cfg.BatchMessages)
}

// process delivers what was polled and commits it. No partition of this process is reassigned during that.
func (s *session) process(reading, handling context.Context, fetches kgo.Fetches) {
	failed := s.noteErrors(reading, fetches)
	records := fetches.Records()
	taken := s.deliver(reading, handling, records)
	if taken < len(records) {
		s.rewind(records[taken:])
	}
	if len(fetches) == 0 {
		// A rebalance may be in progress, and a commit now could concern a partition that another process has.
		return
	}
	s.addUncommitted(records[:taken], topicID(fetches))
	if s.commitDue() {
		committing, cancel := whileStopping(handling, reading)
		s.commit(committing)
		cancel()
	}
	if failed && len(records) == 0 {
		// Only errors: the client retries them, and this loop would spin.
		_ = retry.Sleep(reading, s.cfg.RetryMin)
	}
}

// topicID returns the id of the topic that fetches are of, zero if the brokers do not send it.
func topicID(fetches kgo.Fetches) (id kadm.TopicID) {
	fetches.EachTopic(func(t kgo.FetchTopic) {
		if t.TopicID != [16]byte{} {
			id = t.TopicID
		}
	})
	return id
}

// deliver passes a batch to the handler until it is handled, without a time limit: nothing more is polled until then.
// If the queue is full, the batch is split in parts, half as large each time. It returns the number of records that
// were handled, in order: fewer than all when an unhandled part delays a rebalance or a stop.
func (s *session) deliver(reading, handling context.Context, records []*kgo.Record) int {
	taken, size, attempt := 0, len(records), 0
	for taken < len(records) {
		part := records[taken:min(len(records), taken+size)]
		err := s.deliverBatch(handling, part)
		if err == nil {
			if taken, attempt = taken+len(part), 0; taken < len(records) && s.rebalancePending.clear() {
				return taken
			}
			continue
		}
		if reading.Err() != nil {
			return taken
		}
		if core.CodeOf(err) == core.CodeOverloaded {
			size = max(1, len(part)/2)
		}
		wait := min(max(retry.Delay(attempt, s.cfg.RetryMin, s.cfg.RetryMax), core.RetryAfterOf(err)), s.cfg.RetryMax)
		attempt++
		s.cfg.Logger.WarnContext(handling, "messages were not handled and are retried", "topic", s.cfg.Topic,
			"count", len(part), "pause", wait, "err", err)
		if !s.await(reading, wait) {
			return taken
		}
	}
	return taken
}

// deliverBatch passes records to the handler, without those that end a transaction and carry no message.
func (s *session) deliverBatch(handling context.Context, records []*kgo.Record) error {
	messages := make([]core.TopicMessage, 0, len(records))
	for _, record := range records {
		if record.Attrs.IsControl() {
			continue
		}
		messages = append(messages, core.TopicMessage{
			Value: record.Value, Partition: record.Partition, Offset: record.Offset, At: record.Timestamp, Traceparent: header(record, "traceparent"),
		})
	}
	if len(messages) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(handling, s.cfg.HandleTimeout)
	defer cancel()
	return s.handler.Handle(ctx, messages)
}

// header returns the value of a record's header, "" if it has none of that name.
func header(record *kgo.Record, name string) string {
	for _, h := range record.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// await waits before a batch is retried; false when a rebalance or a stop comes first.
func (s *session) await(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-s.rebalancePending:
		return false
	case <-ctx.Done():
		return false
	}
}

// rewind makes the client read again the records of a batch that was not handled: it has counted them as read.
func (s *session) rewind(records []*kgo.Record) {
	first := map[int32]kgo.EpochOffset{}
	for _, record := range records {
		if _, seen := first[record.Partition]; !seen {
			first[record.Partition] = kgo.EpochOffset{Epoch: record.LeaderEpoch, Offset: record.Offset}
		}
	}
	s.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{s.cfg.Topic: first})
}

// noteErrors handles the errors of a poll and reports whether there was one. The client never reads a partition again after most of
// them, so they end the session.
func (s *session) noteErrors(reading context.Context, fetches kgo.Fetches) (failed bool) {
	fetches.EachError(func(_ string, partition int32, err error) {
		group, ofGroup := errors.AsType[*kgo.ErrGroupSession](err)
		loss, ofLoss := errors.AsType[*kgo.ErrDataLoss](err)
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, kgo.ErrClientClosed) {
			return
		}
		failed = true
		switch {
		case ofGroup && errors.Is(err, kerr.InvalidSessionTimeout):
			s.endWith(err)
		case ofGroup:
			s.state.setGroup(s.groupError(group.Err))
		case ofLoss:
			s.noteLoss(reading, loss)
		case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.OffsetOutOfRange):
			s.cfg.Logger.Info("reading a topic begins anew", "topic", s.cfg.Topic, "partition", partition, "err", err)
			s.endWith(errEnded)
		default:
			s.state.setFetch(s.topicError(err))
			s.endWith(err)
		}
	})
	return failed
}

// noteLoss handles messages that the brokers lost after they had been read: others may have been lost with them.
func (s *session) noteLoss(reading context.Context, loss *kgo.ErrDataLoss) {
	gap := core.TopicGap{Reason: fmt.Sprintf("the brokers lost messages of the Kafka topic %q: partition %d ends at offset %d and was read up to %d",
		s.cfg.Topic, loss.Partition, loss.ResetTo, loss.ConsumedTo)}
	for attempt := 0; s.missed(reading, gap) != nil; attempt++ {
		if !s.await(reading, retry.Delay(attempt, s.cfg.RetryMin, s.cfg.RetryMax)) {
			s.cfg.Logger.Warn("messages of a topic were lost, and nothing replaces them", "topic", s.cfg.Topic, "reason", gap.Reason)
			return
		}
	}
}

// rebalanceSignal holds a token while a rebalance waits for the batch in flight.
type rebalanceSignal chan struct{}

// set is the client's callback, which runs on a goroutine of its own.
func (s rebalanceSignal) set(context.Context, *kgo.Client) {
	select {
	case s <- struct{}{}:
	default:
	}
}

// clear reports whether a rebalance waited. A later one belongs to the next batch.
func (s rebalanceSignal) clear() bool {
	select {
	case <-s:
		return true
	default:
		return false
	}
}
