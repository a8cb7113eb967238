package natsconn

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

const (
	// maxFlights is how many messages, or batches of them, a Batches sends at once; what arrives while that many are on their way waits.
	maxFlights = 2
	// minBatch is the smallest batch: for a smaller one the server does more than for its messages alone.
	minBatch = 8
	maxBatch = 256
	// maxHeaders is more than the bytes that the headers of a batch add to a message.
	maxHeaders = 512
)

// Headers of a message that is a part of an atomic batch (nats-server 2.12 and later).
const (
	headerBatchID       = "Nats-Batch-Id"
	headerBatchSequence = "Nats-Batch-Sequence"
	headerBatchCommit   = "Nats-Batch-Commit"
)

// Batches stores messages of many callers in one stream, which must allow atomic batches and rollups. A message that arrives alone is sent at
// once. Those that arrive while others are on their way are stored together, for which the server syncs once. A batch that the server refuses
// is sent again message by message, so that one that cannot be stored does not concern the others; in halves, if it was refused for one of them.
type Batches struct {
	conn *Conn
	// work counts the goroutines.
	work *sync.WaitGroup

	mu      sync.Mutex
	flights int
	waiting []*batched
}

type batched struct {
	ctx     context.Context //nolint:containedctx // it bounds one call that another goroutine makes
	message *nats.Msg
	// stored receives the outcome; it is buffered, because the caller may have gone.
	stored chan error
}

// NewBatches returns a Batches of a connection, whose goroutines work counts.
func NewBatches(c *Conn, work *sync.WaitGroup) *Batches { return &Batches{conn: c, work: work} }

// Replace is Store for a message in place of those that its subject has.
func (b *Batches) Replace(ctx context.Context, m *nats.Msg) error { return b.Store(ctx, replacing(m)) }

// Store stores a message, with what its headers expect of the stream, and returns when the server has it on disk. After an error of ctx or
// of the connection it may be stored, but is not sent any more. m must not be used any more.
func (b *Batches) Store(ctx context.Context, m *nats.Msg) error {
	one := &batched{ctx, m, make(chan error, 1)}
	if int64(m.Size())+maxHeaders > b.conn.NC.MaxPayload() { // a batch that is not sent to its end stays in the server's memory for a while
		b.send(one)
		return <-one.stored
	}
	b.mu.Lock()
	if b.flights < maxFlights {
		b.flights++
		b.mu.Unlock()
		b.send(one)
		b.land()
		return <-one.stored
	}
	b.waiting = append(b.waiting, one)
	b.mu.Unlock()
	select {
	case err := <-one.stored:
		return err
	case <-ctx.Done():
	}
	if b.withdraw(one) {
		return ctx.Err()
	}
	return <-one.stored // it is on its way: what the caller sends then comes after it
}

// withdraw removes a message from those that wait, and reports whether it was one of them.
func (b *Batches) withdraw(one *batched) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := slices.Index(b.waiting, one)
	if at < 0 {
		return false
	}
	b.waiting = slices.Delete(b.waiting, at, at+1)
	return true
}

// land ends a flight, or starts the next one in its place.
func (b *Batches) land() {
	b.mu.Lock()
	defer b.mu.Unlock()
	group := b.take()
	if len(group) == 0 {
		b.flights--
		return
	}
	b.work.Go(func() {
		b.fly(group)
		b.land()
	})
}

// take takes the messages that waited longest from those that wait, at most one of each subject; the lock must be held.
func (b *Batches) take() (group []*batched) {
	subjects := make(map[string]bool, min(len(b.waiting), maxBatch))
	b.waiting = slices.DeleteFunc(b.waiting, func(one *batched) bool {
		if len(group) == maxBatch || subjects[one.message.Subject] {
			return false
		}
		subjects[one.message.Subject] = true
		group = append(group, one)
		return true
	})
	return group
}

// fly stores a group of messages, each of another subject.
func (b *Batches) fly(group []*batched) {
	if len(group) >= minBatch {
		refused, err := b.store(group)
		switch {
		case refused == nil:
			for _, one := range group {
				one.stored <- err
			}
			return
		case len(group) >= 2*minBatch && ofOneMessage(refused):
			b.fly(group[:len(group)/2])
			b.fly(group[len(group)/2:])
			return
		}
	}
	var singles sync.WaitGroup
	for _, one := range group {
		singles.Go(func() { b.send(one) })
	}
	singles.Wait()
}

func (b *Batches) send(one *batched) {
	_, err := b.conn.Publish(one.ctx, one.message)
	one.stored <- err
}

// errNotSent is why a batch is not stored that was not sent to its end.
var errNotSent = errors.New("the batch was not sent")

// errNoBatch is why a batch counts as not stored whose messages the server has taken one by one: it has not answered for each of them.
var errNoBatch = errors.New("the server does not know batches")

// codeDuplicate is the server's code for a batch with a message whose id it knows.
const codeDuplicate jetstream.ErrorCode = 10201

// ofOneMessage reports whether a batch was refused because of one message of it, or of some: because of what it expects, or its id.
func ofOneMessage(refused error) bool {
	api, ok := errors.AsType[*jetstream.APIError](refused)
	return ok && (api.ErrorCode == codeDuplicate || IsConflict(refused))
}

// store stores messages as one batch. refused is why the server did not store it, or errNotSent: none is stored, and after errNoBatch any may be.
// After err all or none are.
func (b *Batches) store(group []*batched) (refused, err error) {
	id := nuid.Next()
	ctx, cancel := context.WithTimeout(context.Background(), firstAttemptTimeout) // it is of many callers, who send again what is not answered
	defer cancel()
	err = b.conn.Write(ctx, func(ctx context.Context) error {
		for i, one := range group {
			m := &nats.Msg{Subject: one.message.Subject, Data: one.message.Data, Header: nats.Header{
				headerBatchID: {id}, headerBatchSequence: {strconv.Itoa(i + 1)},
			}}
			maps.Copy(m.Header, one.message.Header)
			if i < len(group)-1 {
				if b.conn.NC.PublishMsg(m) != nil {
					refused = errNotSent
					return nil
				}
				continue
			}
			m.Header[headerBatchCommit] = []string{"1"}
			got, err := b.conn.NC.RequestMsgWithContext(ctx, m)
			if err != nil {
				return err
			}
			var answer struct {
				Error *jetstream.APIError `json:"error"`
				Batch string              `json:"batch"`
			}
			if err = json.Unmarshal(got.Data, &answer); answer.Error != nil {
				refused = answer.Error
			} else if err == nil && answer.Batch != id {
				refused = errNoBatch
			}
			return err
		}
		return nil
	})
	if errors.Is(err, nats.ErrNoResponders) {
		return errNotSent, nil
	}
	return refused, err
}
