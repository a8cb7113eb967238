package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"tutti/internal/base/retry"
	"tutti/internal/core"
)

// state is what Health, the metric and the log say about a Reader, the same in all three.
type state struct {
	reader *Reader

	mu         sync.Mutex
	conditions conditions
	fetchAt    time.Time // when conditions.fetch was set last
	lag        int64
	topicID    kadm.TopicID // the topic that was read last, by any session
	running    bool
	shown      error
}

// conditions are the reasons why a topic is not read as it should be, each nil where it does not hold.
type conditions struct {
	check  error // of the last check of brokers and topic
	fetch  error // of reading a partition
	group  error // while the group has not assigned the partitions to read, and where to begin
	commit error // of the last commit
}

// first returns the condition that a reader should know first.
func (c conditions) first() error {
	return firstError(c.check, c.fetch, c.group, c.commit)
}

// change changes the conditions, and shows the result.
func (s *state) change(change func(*conditions)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		return
	}
	change(&s.conditions)
	before, cfg := s.shown, s.reader.cfg
	s.shown = s.conditions.first()
	cfg.Metrics.setUp(s.reader, s.shown == nil)
	switch {
	case s.shown == nil && before != nil:
		cfg.Logger.Info("a Kafka topic is up", "topic", cfg.Topic, "group", cfg.Group)
	case s.shown == nil || before != nil && core.MessageOf(before) == core.MessageOf(s.shown):
	case errors.Is(s.shown, errGroupWaits):
		cfg.Logger.Info("a Kafka topic is down", "topic", cfg.Topic, "group", cfg.Group, "err", s.shown)
	default:
		cfg.Logger.Warn("a Kafka topic is down", "topic", cfg.Topic, "group", cfg.Group, "hint", core.HintOf(s.shown), "err", s.shown)
	}
}

// noteWaiting notes that the group has not assigned partitions, unless a more exact reason is known.
func (s *state) noteWaiting(waiting error) {
	s.change(func(c *conditions) {
		if c.group == nil {
			c.group = waiting
		}
	})
}

func (s *state) setGroup(err error) {
	s.change(func(c *conditions) {
		c.group = err
		if err != nil {
			c.noteAnswer()
		}
	})
}

func (s *state) setFetch(err error) {
	s.change(func(c *conditions) {
		c.fetch, s.fetchAt = err, time.Now()
		c.noteAnswer()
	})
}

// errUnanswered is within the error of a Reader whose first check has not ended.
var errUnanswered = errors.New("no check has ended yet")

// noteAnswer notes that the brokers said more than that no check has ended. What they refuse can end each session before its first check.
func (c *conditions) noteAnswer() {
	if errors.Is(c.check, errUnanswered) {
		c.check = nil
	}
}

// start sets the conditions of a Reader that has not read anything.
func (s *state) start(waiting error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = true
	s.conditions = conditions{check: core.WrapError(core.CodeUnavailable, "no Kafka broker has answered yet", errUnanswered), group: waiting}
	s.shown = s.conditions.first()
	s.reader.cfg.Metrics.setUp(s.reader, false)
}

func (s *state) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running, s.shown = false, errNotRunning()
	s.reader.cfg.Metrics.forget(s.reader)
}

func (s *state) health() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown
}

// setLag sets the number of messages that are not yet committed.
func (s *state) setLag(lag int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag = lag
	s.reader.cfg.Metrics.setLag(s.reader, lag)
}

// last returns the topic that was read last, zero before one was, and its lag at the last check.
func (s *state) last() (kadm.TopicID, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.topicID, s.lag
}

func (s *state) setTopic(id kadm.TopicID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.topicID = id
}

// checkTimeout limits one check of the brokers, as does ten times the interval of checks. fetchErrorHolds is how long an error of
// reading holds at least, while no further one comes: only the absence of errors shows that it has ended.
const (
	checkTimeout    = 5 * time.Second
	fetchErrorHolds = 2 * time.Second
)

// runChecks checks the brokers periodically, for Health and the metrics.
func (s *session) runChecks(ctx context.Context) {
	for ctx.Err() == nil {
		err := s.check(ctx)
		if ctx.Err() != nil {
			return
		}
		s.state.change(func(c *conditions) {
			c.check = err
			if c.group == nil && time.Since(s.state.fetchAt) > max(fetchErrorHolds, s.cfg.CheckEvery) {
				c.fetch = nil
			}
		})
		wait := s.cfg.CheckEvery
		if s.Health() != nil {
			wait /= 5
		}
		_ = retry.Sleep(ctx, wait)
	}
}

// check reads the topic's metadata and its lag. It ends the session when the topic was made anew: the client would never read that.
func (s *session) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, min(checkTimeout, 10*s.cfg.CheckEvery))
	defer cancel()
	id, err := s.describe(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	anew := s.topicID != kadm.TopicID{} && s.topicID != id
	s.topicID = id
	s.mu.Unlock()
	if anew {
		s.cfg.Logger.Info("a topic was deleted and made anew", "topic", s.cfg.Topic, "group", s.cfg.Group)
		s.endWith(errEnded)
		return nil
	}
	lag, err := s.readLag(ctx)
	if err != nil {
		return s.brokerError(err)
	}
	s.state.setLag(lag)
	return nil
}

// describe returns the id of the topic, zero if the brokers have none.
func (s *session) describe(ctx context.Context) (kadm.TopicID, error) {
	metadata, err := s.admin.Metadata(ctx, s.cfg.Topic)
	if err != nil {
		return kadm.TopicID{}, s.brokerError(err)
	}
	if err := metadata.Topics[s.cfg.Topic].Err; err != nil {
		return kadm.TopicID{}, s.topicError(err)
	}
	return metadata.Topics[s.cfg.Topic].ID, nil
}

// readLag returns the number of messages after the committed offsets of the partitions that this process reads, without those of
// transactions that are not committed.
func (s *session) readLag(ctx context.Context) (int64, error) {
	ends, err := s.admin.ListCommittedOffsets(ctx, s.cfg.Topic)
	if err != nil {
		return 0, err
	}
	starts, err := s.admin.ListStartOffsets(ctx, s.cfg.Topic)
	if err != nil {
		return 0, err
	}
	var lag int64
	for partition, committed := range s.client.CommittedOffsets()[s.cfg.Topic] {
		end, known := ends.Lookup(s.cfg.Topic, partition)
		if !known || end.Err != nil {
			continue
		}
		from := committed.Offset
		if start, known := starts.Lookup(s.cfg.Topic, partition); known && start.Err == nil {
			from = max(from, start.Offset)
		}
		lag += max(0, end.Offset-from)
	}
	return lag, nil
}

func (r *Reader) topicError(err error) error {
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return &core.Error{
			Code: core.CodeUnavailable, Message: fmt.Sprintf("the Kafka topic %q does not exist", r.cfg.Topic),
			Hint: "create the topic, or fix its name in the configuration; reading starts as soon as it exists", Err: err,
		}
	}
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		return &core.Error{
			Code: core.CodeUnavailable, Message: fmt.Sprintf("reading the Kafka topic %q is not authorized", r.cfg.Topic),
			Hint: "allow this client to read and describe the topic", Err: err,
		}
	}
	if failure := r.connection.Failure(err); core.HintOf(failure) != "" {
		return failure
	}
	return core.WrapError(core.CodeUnavailable, fmt.Sprintf("the Kafka topic %q cannot be read at the moment", r.cfg.Topic), err)
}

// brokerError turns an error of a request about the topic into a displayable one: the topic's if a broker has answered.
func (r *Reader) brokerError(err error) error {
	if failure := r.connection.Failure(err); core.HintOf(failure) != "" {
		return failure
	}
	if _, answered := errors.AsType[*kerr.Error](err); answered {
		return r.topicError(err)
	}
	return &core.Error{
		Code: core.CodeUnavailable, Message: "no Kafka broker answers",
		Hint: "check that the brokers run and that their configured addresses are right", Err: err,
	}
}

// errGroupWaits is within the error of a group that has not assigned partitions yet, as at every start.
var errGroupWaits = errors.New("no partition was assigned yet")

// errWaiting returns the error of a process that waits for its consumer group with a session timeout.
func (r *Reader) errWaiting(timeout time.Duration) error {
	return &core.Error{
		Code: core.CodeUnavailable, Message: fmt.Sprintf("the Kafka consumer group %q has not assigned the partitions of topic %q to this process yet",
			r.cfg.Group, r.cfg.Topic),
		Hint: fmt.Sprintf("the group waits up to %s for a process that ended without leaving it, and up to %s for one that is busy",
			timeout, r.cfg.RebalanceTimeout), Err: errGroupWaits,
	}
}

// groupError turns an error of the consumer group into a displayable one.
func (r *Reader) groupError(err error) error {
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		return r.topicError(err)
	}
	if errors.Is(err, kerr.GroupAuthorizationFailed) {
		return &core.Error{
			Code: core.CodeUnavailable, Message: "using the Kafka consumer group is not authorized",
			Hint: "allow this client to read with the group", Err: err,
		}
	}
	if failure := r.connection.Failure(err); core.HintOf(failure) != "" {
		return failure
	}
	return core.WrapError(core.CodeUnavailable, "Kafka rejects reads at the moment", err)
}

// commitError turns an error of a commit into a displayable one.
func commitError(err error) error {
	return &core.Error{
		Code: core.CodeUnavailable, Message: "Kafka rejects the commits of offsets",
		Hint: "messages are read, and are read again after a restart; check the brokers and the rights of this client", Err: err,
	}
}
