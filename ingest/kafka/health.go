package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"tutti/internal/core"
	"tutti/internal/retry"
)

// checkTimeout limits one check of the brokers, as does ten times the interval of checks.
const checkTimeout = 5 * time.Second

// Health returns nil when a broker answered the last check and reading continues. Its errors are CodeUnavailable,
// with a message that is safe to display and a hint where there is one.
func (r *Reader) Health() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.checkErr != nil {
		return r.checkErr
	}
	return r.pollErr
}

// runChecks checks the brokers periodically, for Health and the metrics.
func (r *Reader) runChecks(ctx context.Context) {
	admin := kadm.NewClient(r.client)
	for ctx.Err() == nil {
		err := r.check(ctx, admin)
		if ctx.Err() != nil {
			return
		}
		r.recordCheck(err)
		r.cfg.Metrics.setUp(r, r.Health() == nil)
		wait := r.cfg.CheckEvery
		if err != nil {
			wait /= 5
		}
		_ = retry.Sleep(ctx, wait)
	}
}

// recordCheck stores the result of a check, and logs when it changed.
func (r *Reader) recordCheck(err error) {
	r.mu.Lock()
	before := r.checkErr
	r.checkErr = err
	if _, generation := r.client.GroupMetadata(); err == nil && generation >= 0 {
		// The client is in its group again.
		r.pollErr = nil
	}
	r.mu.Unlock()
	switch {
	case err != nil && (before == nil || before.Error() != err.Error()):
		r.cfg.Logger.Warn("a topic cannot be read", "topic", r.cfg.Topic, "err", err)
	case err == nil && before != nil:
		r.cfg.Logger.Info("a topic is read", "topic", r.cfg.Topic, "group", r.cfg.Group)
	}
}

// check reads the topic's metadata and its lag.
func (r *Reader) check(ctx context.Context, admin *kadm.Client) error {
	ctx, cancel := context.WithTimeout(ctx, min(checkTimeout, 10*r.cfg.CheckEvery))
	defer cancel()
	metadata, err := admin.Metadata(ctx, r.cfg.Topic)
	if err != nil {
		return unreachable(err)
	}
	if err := metadata.Topics[r.cfg.Topic].Err; err != nil {
		return r.topicError(err)
	}
	lag, err := r.lag(ctx, admin)
	if err != nil {
		return unreachable(err)
	}
	r.cfg.Metrics.setLag(r, lag)
	return nil
}

// lag returns the number of messages after the committed offsets of the partitions that this process reads.
func (r *Reader) lag(ctx context.Context, admin *kadm.Client) (int64, error) {
	if r.cfg.Metrics == nil {
		return 0, nil
	}
	ends, err := admin.ListEndOffsets(ctx, r.cfg.Topic)
	if err != nil {
		return 0, err
	}
	starts, err := admin.ListStartOffsets(ctx, r.cfg.Topic)
	if err != nil {
		return 0, err
	}
	var lag int64
	for partition, committed := range r.client.CommittedOffsets()[r.cfg.Topic] {
		end, known := ends.Lookup(r.cfg.Topic, partition)
		if !known || end.Err != nil {
			continue
		}
		from := committed.Offset
		if start, known := starts.Lookup(r.cfg.Topic, partition); known && start.Err == nil {
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
	return core.WrapError(core.CodeUnavailable, fmt.Sprintf("the Kafka topic %q cannot be read at the moment", r.cfg.Topic), err)
}

func unreachable(err error) error {
	return &core.Error{
		Code: core.CodeUnavailable, Message: "no Kafka broker answers",
		Hint: "check that the brokers run and that their configured addresses are right", Err: err,
	}
}

// groupError turns an error of a poll into a displayable one.
func groupError(err error) error {
	if errors.Is(err, kerr.GroupAuthorizationFailed) {
		return &core.Error{
			Code: core.CodeUnavailable, Message: "using the Kafka consumer group is not authorized",
			Hint: "allow this client to read with the group", Err: err,
		}
	}
	return core.WrapError(core.CodeUnavailable, "Kafka rejects reads at the moment", err)
}
