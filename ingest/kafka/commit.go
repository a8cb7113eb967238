package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

// addUncommitted adds messages that are stored and whose offsets must be committed.
func (r *Reader) addUncommitted(records []*kgo.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, record := range records {
		// Only the offset is needed; the record's bytes must not be retained.
		r.uncommitted[record.Partition] = &kgo.Record{
			Topic: record.Topic, Partition: record.Partition, Offset: record.Offset, LeaderEpoch: record.LeaderEpoch,
		}
	}
}

func (r *Reader) hasUncommitted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.uncommitted) > 0
}

// commit commits the pending offsets. On an error they stay pending: they are retried with the next batch or soon,
// and until then a restart only reads messages again.
func (r *Reader) commit(ctx context.Context) {
	r.mu.Lock()
	records := make([]*kgo.Record, 0, len(r.uncommitted))
	for _, record := range r.uncommitted {
		records = append(records, record)
	}
	r.mu.Unlock()
	if len(records) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.CommitTimeout)
	defer cancel()
	if err := r.client.CommitRecords(ctx, records...); err != nil {
		r.cfg.Logger.Warn("committing offsets", "topic", r.cfg.Topic, "group", r.cfg.Group, "err", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, record := range records {
		if r.uncommitted[record.Partition] == record {
			delete(r.uncommitted, record.Partition)
		}
	}
}

// revoked commits the pending offsets before partitions are assigned to another process. The client calls it while no
// batch is in flight.
func (r *Reader) revoked(ctx context.Context, _ *kgo.Client, partitions map[string][]int32) {
	r.commit(ctx)
	r.dropUncommitted(partitions)
}

// lost drops the pending offsets of partitions that another process already has: committing could set them back.
func (r *Reader) lost(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
	r.dropUncommitted(partitions)
}

func (r *Reader) dropUncommitted(partitions map[string][]int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range partitions[r.cfg.Topic] {
		delete(r.uncommitted, p)
	}
}
