package kafka

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tutti/internal/base/retry"
)

// addUncommitted adds messages of a topic that are stored and whose offsets must be committed.
func (s *session) addUncommitted(records []*kgo.Record, id kadm.TopicID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, record := range records {
		s.uncommitted[record.Partition] = position{offset: record.Offset + 1, epoch: record.LeaderEpoch, topicID: id}
	}
}

// untilCommit returns how long it is until a commit may be due.
func (s *session) untilCommit() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.uncommitted) == 0 {
		return s.cfg.CheckEvery
	}
	return max(s.cfg.RetryMin, time.Until(s.nextCommit))
}

func (s *session) commitDue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.uncommitted) > 0 && !time.Now().Before(s.nextCommit)
}

// errNotOwner refuses a commit because the partitions may be another process's.
var errNotOwner = errors.New("this process has left the group since it read the messages")

// commit commits the pending offsets. On an error they stay pending and are retried with backoff, and until then a restart only reads
// messages again.
func (s *session) commit(ctx context.Context) {
	s.mu.Lock()
	offsets, member := maps.Clone(s.uncommitted), s.member
	s.mu.Unlock()
	if len(offsets) == 0 {
		return
	}
	err := s.tryCommit(ctx, member, offsets)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.failures, s.nextCommit = 0, time.Time{}
		for partition, p := range offsets {
			if s.uncommitted[partition] == p {
				delete(s.uncommitted, partition)
			}
		}
		s.state.change(func(c *conditions) { c.commit = nil })
	case errors.Is(err, errNotOwner):
		clear(s.uncommitted)
	default:
		s.nextCommit = time.Now().Add(retry.Delay(s.failures, s.cfg.RetryMin, s.cfg.RetryMax))
		s.failures++
		if !rebalancing(err) {
			s.state.change(func(c *conditions) { c.commit = commitError(err) })
		}
	}
}

// tryCommit commits offsets as a member of the group, and as no other: the client may join anew before it sends the request, when the
// partitions may have been another process's in between, whose commits would be undone.
func (s *session) tryCommit(ctx context.Context, member string, offsets map[int32]position) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CommitTimeout)
	defer cancel()
	ctx = kgo.PreCommitFnContext(ctx, func(req *kmsg.OffsetCommitRequest) error {
		if member == "" || req.MemberID != member {
			return errNotOwner
		}
		for _, t := range req.Topics {
			for i := range t.Partitions {
				t.Partitions[i].Metadata = commitMetadata(offsets[t.Partitions[i].Partition].topicID)
			}
		}
		return nil
	})
	request := make(map[int32]kgo.EpochOffset, len(offsets))
	for partition, p := range offsets {
		request[partition] = kgo.EpochOffset{Epoch: p.epoch, Offset: p.offset}
	}
	var failed error
	s.client.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{s.cfg.Topic: request},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
			failed = err
			if err != nil {
				return
			}
			for _, t := range resp.Topics {
				for _, p := range t.Partitions {
					failed = errors.Join(failed, kerr.ErrorForCode(p.ErrorCode))
				}
			}
		})
	return failed
}

// rebalancing reports whether a commit was refused because the group changes; the client then joins it again.
func rebalancing(err error) bool {
	return errors.Is(err, kerr.RebalanceInProgress) || errors.Is(err, kerr.IllegalGeneration) || errors.Is(err, kerr.UnknownMemberID) ||
		errors.Is(err, kerr.UnknownTopicID)
}

// topicPrefix begins the metadata of a commit, which names the topic that the offset is of: Kafka itself stores it by the topic's
// name, which another topic may have later.
const topicPrefix = "topic-id="

func commitMetadata(id kadm.TopicID) *string {
	text := ""
	if id != (kadm.TopicID{}) {
		text = topicPrefix + id.String()
	}
	return &text
}

// ofOtherTopic reports whether a commit with this metadata is of a topic other than id.
func ofOtherTopic(metadata string, id kadm.TopicID) bool {
	of, known := strings.CutPrefix(metadata, topicPrefix)
	return known && id != (kadm.TopicID{}) && of != id.String()
}

// assigned begins the membership of the group. A member that has become another one without losing its partitions first, as a
// client that was suspended for long, may have positions that another process has passed: the session ends.
func (s *session) assigned(_ context.Context, client *kgo.Client, added map[string][]int32) {
	member, _ := client.GroupMetadata()
	s.mu.Lock()
	anew := s.member != "" && s.member != member
	if s.member == "" {
		s.member = member
	}
	s.mu.Unlock()
	switch {
	case anew:
		s.endWith(errEnded)
	case len(added[s.cfg.Topic]) == 0:
		s.state.setGroup(nil)
	}
}

// revoked commits the pending offsets before partitions are assigned to another process. The client calls it while no
// batch is in flight.
func (s *session) revoked(ctx context.Context, _ *kgo.Client, partitions map[string][]int32) {
	<-s.ready
	s.commit(ctx)
	s.dropUncommitted(partitions)
}

// lost drops the pending offsets of partitions that another process already has: committing could set them back.
func (s *session) lost(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
	s.dropUncommitted(partitions)
	s.mu.Lock()
	s.member = ""
	s.mu.Unlock()
	s.state.noteWaiting(s.errWaiting(s.timeout))
}

func (s *session) dropUncommitted(partitions map[string][]int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range partitions[s.cfg.Topic] {
		delete(s.uncommitted, p)
	}
}
