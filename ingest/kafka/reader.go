package kafka

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"tutti/internal/core"
	"tutti/internal/retry"
)

// Handler handles the messages of a topic.
type Handler interface {
	// Handle handles a batch, in order for each partition, and returns nil only when each message is stored; the batch's
	// offsets are committed only then. After an error the same batch, or a part of it, is passed again, even if some of it
	// was stored. Neither messages nor their bytes may be used after the call.
	Handle(ctx context.Context, messages []core.TopicMessage) error
}

// Reader reads one topic with one consumer group and passes its messages to a Handler, at least once.
type Reader struct {
	cfg              Config
	handler          Handler
	rebalancePending rebalanceSignal

	mu          sync.Mutex
	client      *kgo.Client
	closed      bool
	checkErr    error                 // result of the last check
	pollErr     error                 // error of the group or of a poll since the last success
	uncommitted map[int32]*kgo.Record // the last stored and not yet committed message of each partition

	stopReading  context.CancelFunc // ends polling and waiting
	stopHandling context.CancelFunc // cancels the current batch as well
	done         chan struct{}
}

// New returns a Reader. CodeInvalid when cfg is not valid.
func New(cfg Config, handler Handler) (*Reader, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	r := &Reader{
		cfg: cfg.withDefaults(), handler: handler, rebalancePending: make(rebalanceSignal, 1), uncommitted: map[int32]*kgo.Record{},
		checkErr: core.NewError(core.CodeUnavailable, "the Kafka reader is not running"),
	}
	if err := kgo.ValidateOpts(r.options()...); err != nil {
		return nil, core.WrapError(core.CodeInvalid, "the settings of the Kafka reader are not valid", err)
	}
	return r, nil
}

// Start starts reading and returns at once: brokers that do not answer are retried without limit, which Health
// reports. It must be called only once. The values of ctx are used, its end is ignored.
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

// Stop ends reading: the current batch is finished and committed, the group is left. If ctx ends first, the batch is
// cancelled, to be read again by the next owner of its partition, and Stop returns an error shortly after. A stopped
// Reader cannot be started again.
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
		err = core.WrapError(core.CodeUnavailable, "stopping the Kafka reader: the current batch was cancelled", ctx.Err())
		r.stopHandling()
		<-r.done
	}
	// Leaving lets the others of the group take over at once; they would wait for the session timeout otherwise.
	leaving, cancel := context.WithTimeout(ctx, r.cfg.CommitTimeout)
	defer cancel()
	if left := client.LeaveGroupContext(leaving); left != nil {
		r.cfg.Logger.InfoContext(ctx, "leaving a consumer group", "topic", r.cfg.Topic, "group", r.cfg.Group, "err", left)
	}
	r.stopHandling()
	client.CloseAllowingRebalance()
	client.AllowRebalance() // of the two leaves, this one's and Close's, the second may still be blocked
	r.mu.Lock()
	r.checkErr = core.NewError(core.CodeUnavailable, "the Kafka reader is not running")
	r.mu.Unlock()
	r.cfg.Metrics.forget(r)
	return err
}

// read polls and delivers until reading ends; the current batch is then finished, until handling ends.
func (r *Reader) read(reading, handling context.Context) {
	for reading.Err() == nil {
		r.rebalancePending.clear()
		fetches := r.poll(reading)
		r.process(reading, handling, fetches)
		r.client.AllowRebalance()
	}
}

// poll waits for messages, for a short time if a commit is pending.
func (r *Reader) poll(ctx context.Context) kgo.Fetches {
	if r.hasUncommitted() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.cfg.RetryMin)
		defer cancel()
	}
	return r.client.PollRecords(ctx, r.cfg.BatchMessages)
}

// process delivers what was polled and commits it. No partition of this process is reassigned during that.
func (r *Reader) process(reading, handling context.Context, fetches kgo.Fetches) {
	r.noteErrors(fetches)
	records := fetches.Records()
	if taken := r.deliver(reading, handling, records); taken < len(records) {
		r.rewind(records[taken:])
		records = records[:taken]
	}
	if len(fetches) == 0 {
		// A rebalance may be in progress, and a commit now could concern a partition that another process has.
		return
	}
	r.addUncommitted(records)
	r.commit(handling)
	if fetches.NumRecords() == 0 {
		// Only errors: the client retries them, and this loop would spin.
		_ = retry.Sleep(reading, r.cfg.RetryMin)
	}
}

// deliver passes a batch to the handler until it is handled, without a time limit: nothing more is polled until then.
// If the queue is full, the batch is split in parts, half as large each time. It returns the number of records that
// were handled, in order: fewer than all when an unhandled part delays a rebalance or a stop.
func (r *Reader) deliver(reading, handling context.Context, records []*kgo.Record) int {
	taken, size, attempt := 0, len(records), 0
	for taken < len(records) {
		part := records[taken:min(len(records), taken+size)]
		err := r.deliverBatch(handling, part)
		if err == nil {
			if taken, attempt = taken+len(part), 0; taken < len(records) && r.rebalancePending.clear() {
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
		r.cfg.Logger.WarnContext(handling, "messages were not handled and are retried", "topic", r.cfg.Topic,
			"count", len(part), "pause", wait, "err", err)
		if !r.await(reading, wait) {
			return taken
		}
	}
	return taken
}

func (r *Reader) deliverBatch(handling context.Context, records []*kgo.Record) error {
	messages := make([]core.TopicMessage, len(records))
	for i, record := range records {
		messages[i] = core.TopicMessage{
			Value: record.Value, Partition: record.Partition, Offset: record.Offset, At: record.Timestamp, Traceparent: header(record, "traceparent"),
		}
	}
	ctx, cancel := context.WithTimeout(handling, r.cfg.HandleTimeout)
	defer cancel()
	return r.handler.Handle(ctx, messages)
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

// rewind makes the client read again the records of a batch that was not handled: it has counted them as read.
func (r *Reader) rewind(records []*kgo.Record) {
	first := map[int32]kgo.EpochOffset{}
	for _, record := range records {
		if _, seen := first[record.Partition]; !seen {
			first[record.Partition] = kgo.EpochOffset{Epoch: record.LeaderEpoch, Offset: record.Offset}
		}
	}
	r.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{r.cfg.Topic: first})
}

// noteErrors stores the errors of a poll for Health.
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
