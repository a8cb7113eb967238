package kafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tutti/internal/base/retry"
	"tutti/internal/core"
)

// offsetsFetched remembers the metadata of the commits that the client has read; adjust follows.
func (s *session) offsetsFetched(_ context.Context, _ *kgo.Client, resp *kmsg.OffsetFetchResponse) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range resp.Groups {
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				s.fetched[p.Partition] = ""
				if p.Metadata != nil {
					s.fetched[p.Partition] = *p.Metadata
				}
			}
		}
	}
	return nil
}

// adjust decides where partitions that were assigned to this process are read from: at their commits, or, where the topic does not have
// these, at its start once the handler has stored what replaces the messages in between. It retries until ctx ends, as it does at the
// next rebalance.
func (s *session) adjust(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	<-s.ready
	for attempt := 0; ; attempt++ {
		err := s.findGap(ctx, offsets[s.cfg.Topic])
		if err == nil {
			s.state.setGroup(nil)
			return offsets, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		s.state.setGroup(err)
		if err := retry.Sleep(ctx, retry.Delay(attempt, s.cfg.RetryMin, s.cfg.RetryMax)); err != nil {
			return nil, err
		}
	}
}

// findGap compares the commits of partitions with what the topic has. It passes a gap to the handler, sets the offset of each partition
// behind it, and has that committed, so that the gap is found once. So it does with the start of a partition that has no commit.
func (s *session) findGap(ctx context.Context, commits map[int32]kgo.Offset) error {
	id, err := s.describe(ctx)
	if err != nil {
		return err
	}
	starts, err := s.admin.ListStartOffsets(ctx, s.cfg.Topic)
	if err := firstError(err, starts.Error()); err != nil {
		return s.brokerError(err)
	}
	ends, err := s.admin.ListEndOffsets(ctx, s.cfg.Topic)
	if err := firstError(err, ends.Error()); err != nil {
		return s.brokerError(err)
	}
	last, lag := s.state.last()
	anew := last != kadm.TopicID{} && id != kadm.TopicID{} && last != id
	var missed int64
	ahead, behind := false, map[int32]int64{}
	s.mu.Lock()
	for partition, commit := range commits {
		at := commit.EpochOffset().Offset
		start, end := starts[s.cfg.Topic][partition], ends[s.cfg.Topic][partition]
		switch {
		case at < 0: // none yet, so that what is removed from now on is a gap
		case anew || ofOtherTopic(s.fetched[partition], id):
			anew = true
		case at < start.Offset:
			missed += start.Offset - at
		case at > end.Offset:
			ahead = true
		default:
			continue
		}
		behind[partition] = start.Offset
	}
	s.mu.Unlock()
	gap := core.TopicGap{Offsets: missed}
	switch {
	case anew:
		gap.Offsets += lag
		gap.Reason = fmt.Sprintf("the Kafka topic %q was deleted and made anew", s.cfg.Topic)
	case ahead:
		gap.Reason = fmt.Sprintf("the Kafka topic %q ends before the offset up to which it was read", s.cfg.Topic)
	case missed > 0:
		gap.Reason = fmt.Sprintf("the Kafka topic %q removed messages before they were read", s.cfg.Topic)
	}
	if gap.Reason != "" {
		if err := s.missed(ctx, gap); err != nil {
			return err
		}
	}
	s.state.setTopic(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	for partition, start := range behind {
		commits[partition] = kgo.NewOffset().At(start)
		s.uncommitted[partition] = position{offset: start, epoch: -1, topicID: id}
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
