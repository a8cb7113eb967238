package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"tutti/internal/core"
	"tutti/internal/retry"
)

// Handler takes the messages of a topic.
type Handler interface {
	// Handle takes the values of a batch, in order for each partition, and returns nil only when each of them is safe;
	// the batch's offsets are committed only then. After an error the same batch, or a part of it, is handed over again,
	// also when some of it was safe already. position tells where the i-th message stands, such as "partition 3, offset
	// 117", and at when Kafka says it was written, a time before 1970 where it does not say. A tombstone's value is nil.
	// Neither values nor their bytes may be kept beyond the call.
	Handle(ctx context.Context, values [][]byte, position func(i int) string, at func(i int) time.Time) error
}

// Reader reads one topic in the name of one consumer group and hands what it reads to a Handler, at least once.
type Reader struct {
	cfg              Config
	handler          Handler
	rebalancePending chan struct{} // holds a token while a rebalance waits for the batch in hand

	mu          sync.Mutex
	client      *kgo.Client
	closed      bool
	checkErr    error                 // what the last look at the brokers found
	pollErr     error                 // what the group or a poll reported since it was last well
	uncommitted map[int32]*kgo.Record // the last message of each partition that is safe and not yet committed

	stopReading  context.CancelFunc // ends polling and waiting
	stopHandling context.CancelFunc // ends what is in hand as well
	done         chan struct{}
}

// New makes a Reader. CodeInvalid names what is wrong with cfg.
func New(cfg Config, handler Handler) (*Reader, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	r := &Reader{
		cfg: cfg.withDefaults(), handler: handler, rebalancePending: make(chan struct{}, 1), uncommitted: map[int32]*kgo.Record{},
		checkErr: core.NewError(core.CodeUnavailable, "the Kafka reader is not running"),
	}
	if err := kgo.ValidateOpts(r.options()...); err != nil {
		return nil, core.WrapError(core.CodeInvalid, "the settings of the Kafka reader are not valid", err)
	}
	return r, nil
}

// Start begins to read and returns at once: brokers that do not answer are tried for as long as it takes, which Health
// tells. It may be called once. The values of ctx are kept, its end is not heeded.
func (r *Reader) Start(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client != nil || r.closed {
		return core.NewError(core.CodeConflict, "the Kafka reader was started already")
	}
	handling, stopHandling := context.WithCancel(context.WithoutCancel(ctx))
	client, err := kgo.NewClient(append(r.options(), kgo.WithContext(handling))...)
	if err != nil {
		stopHandling()
		return core.WrapError(core.CodeInvalid, "starting the Kafka reader", err)
	}
	r.client = client
	r.checkErr = core.NewError(core.CodeUnavailable, "no Kafka broker has answered yet")
	reading, stopReading := context.WithCancel(handling)
	r.stopReading, r.stopHandling, r.done = stopReading, stopHandling, make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { r.read(reading, handling) })
	wg.Go(func() { r.runChecks(reading) })
	go func() {
		wg.Wait()
		close(r.done)
	}()
	return nil
}

// Stop ends reading: the batch in hand is ended and committed, the group is left. When ctx ends first, the batch is given
// up, to be read again by whoever gets its partition, and Stop returns a moment later with an error. A Reader that is
// stopped is not started again.
func (r *Reader) Stop(ctx context.Context) error {
	r.mu.Lock()
	client, idle := r.client, r.client == nil || r.closed
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
		err = core.WrapError(core.CodeUnavailable, "stopping the Kafka reader: the batch in hand was given up", ctx.Err())
		r.stopHandling()
		<-r.done
	}
	// Leaving is a courtesy to the others of the group, who otherwise wait for the session to end.
	leaving, cancel := context.WithTimeout(ctx, r.cfg.CommitTimeout)
	defer cancel()
	if left := client.LeaveGroupContext(leaving); left != nil {
		r.cfg.Logger.InfoContext(ctx, "leaving a consumer group", "topic", r.cfg.Topic, "group", r.cfg.Group, "err", left)
	}
	r.stopHandling()
	client.CloseAllowingRebalance()
	client.AllowRebalance() // of the two leaves, this one's and Close's, the second may still wait for its turn
	r.mu.Lock()
	r.checkErr = core.NewError(core.CodeUnavailable, "the Kafka reader is not running")
	r.mu.Unlock()
	r.cfg.Metrics.forget(r)
	return err
}

// read polls and hands over until reading ends; what is in hand then is ended, until handling ends.
func (r *Reader) read(reading, handling context.Context) {
	for reading.Err() == nil {
		r.clearRebalance()
		fetches := r.poll(reading)
		r.process(reading, handling, fetches)
		r.client.AllowRebalance()
	}
}

// poll waits for messages, not for long where a commit is still owed.
func (r *Reader) poll(ctx context.Context) kgo.Fetches {
	if r.hasUncommitted() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.cfg.RetryMin)
		defer cancel()
	}
	return r.client.PollRecords(ctx, r.cfg.BatchMessages)
}

// process hands over what was polled and commits it. Nobody is given a partition of this process meanwhile.
func (r *Reader) process(reading, handling context.Context, fetches kgo.Fetches) {
	r.noteErrors(fetches)
	records := fetches.Records()
	if taken := r.deliver(reading, handling, records); taken < len(records) {
		r.rewind(records[taken:])
		records = records[:taken]
	}
	if len(fetches) == 0 {
		// A rebalance may be under way, and a commit now could be of a partition that is somebody else's.
		return
	}
	r.addUncommitted(records)
	r.commit(handling)
	if fetches.NumRecords() == 0 {
		// Errors alone: what is behind them is retried by the client, and would only spin here.
		_ = retry.Sleep(reading, r.cfg.RetryMin)
	}
}

// deliver returns a batch to the handler until it takes it, for as long as it takes: nothing more is polled meanwhile. Where
// there is no room for all of it, it is given in parts, half as large each time. It returns the number of records that were
// taken, in order: fewer than all when what is refused is in the way of a rebalance or of a stop.
func (r *Reader) deliver(reading, handling context.Context, records []*kgo.Record) int {
	taken, size, attempt := 0, len(records), 0
	for taken < len(records) {
		part := records[taken:min(len(records), taken+size)]
		err := r.deliverBatch(handling, part)
		if err == nil {
			if taken, attempt = taken+len(part), 0; taken < len(records) && r.takeRebalance() {
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
		wait := min(max(retry.Delay(attempt, r.cfg.RetryMin, r.cfg.RetryMax), core.RetryAfterOf(err)), r.cfg.RetryMax)
		attempt++
		r.cfg.Logger.WarnContext(handling, "messages are not taken and are handed over again", "topic", r.cfg.Topic,
			"count", len(part), "pause", wait, "err", err)
		if !r.await(reading, wait) {
			return taken
		}
	}
	return taken
}

func (r *Reader) deliverBatch(handling context.Context, records []*kgo.Record) error {
	values := make([][]byte, len(records))
	for i, record := range records {
		values[i] = record.Value
	}
	position := func(i int) string {
		return fmt.Sprintf("partition %d, offset %d", records[i].Partition, records[i].Offset)
	}
	ctx, cancel := context.WithTimeout(handling, r.cfg.HandleTimeout)
	defer cancel()
	return r.handler.Handle(ctx, values, position, func(i int) time.Time { return records[i].Timestamp })
}

// await waits before a batch is handed over again; false when a rebalance or a stop comes first.
func (r *Reader) await(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.rebalancePending:
		return false
	case <-ctx.Done():
		return false
	}
}

// rewind makes the client read a batch again that was given up: it has counted it as read.
func (r *Reader) rewind(records []*kgo.Record) {
	first := map[int32]kgo.EpochOffset{}
	for _, record := range records {
		if _, seen := first[record.Partition]; !seen {
			first[record.Partition] = kgo.EpochOffset{Epoch: record.LeaderEpoch, Offset: record.Offset}
		}
	}
	r.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{r.cfg.Topic: first})
}

// onRebalance notes that a rebalance waits for the batch in hand. The client calls it on a goroutine of its own.
func (r *Reader) onRebalance(context.Context, *kgo.Client) {
	select {
	case r.rebalancePending <- struct{}{}:
	default:
	}
}

// takeRebalance reports whether a rebalance waits.
func (r *Reader) takeRebalance() bool {
	select {
	case <-r.rebalancePending:
		return true
	default:
		return false
	}
}

// clearRebalance forgets a rebalance that has been allowed. One that comes up from here on is of the next batch.
func (r *Reader) clearRebalance() {
	select {
	case <-r.rebalancePending:
	default:
	}
}

// noteErrors keeps for Health what a poll reported beside messages.
func (r *Reader) noteErrors(fetches kgo.Fetches) {
	fetches.EachError(func(_ string, partition int32, err error) {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, kgo.ErrClientClosed) {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.pollErr == nil {
			r.cfg.Logger.Warn("reading a topic", "topic", r.cfg.Topic, "partition", partition, "err", err)
		}
		r.pollErr = groupError(err)
	})
	if fetches.NumRecords() > 0 {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.pollErr = nil
	}
}
