// Package together stores messages of many callers in a stream, in atomic batches where several arrive at once, and one in place of another
// of its subject.
package together

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"tutti/internal/queue/natsconn"
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

// maxNewest bounds the subjects whose newest message is remembered.
const maxNewest = 1 << 16

// Batches stores messages of many callers in one stream, which must allow atomic batches. A message that arrives alone is sent at
// once. Those that arrive while others are on their way are stored together, for which the server syncs once. A batch that the server refuses
// is sent again message by message, so that one that cannot be stored does not concern the others; in halves, if it was refused for one of them.
type Batches struct {
	conn *natsconn.Conn
	// work counts the goroutines.
	work *sync.WaitGroup
	// last returns the sequence of the last message of a subject, 0 for none.
	last func(ctx context.Context, subject string) (uint64, error)

	mu      sync.Mutex
	flights int
	// flying are the subjects of the messages on their way, or whose replaced message is not removed yet; a further one of such a subject waits.
	flying  map[string]bool
	waiting []*batched
	// newest is the sequence of the newest message that was stored on a subject, until Forget.
	newest map[string]uint64
}

type batched struct {
	ctx     context.Context //nolint:containedctx // it bounds one call that another goroutine makes
	message *nats.Msg
	// replaces is true for a message that takes the place of the one with the sequence replaced, 0 for none.
	replaces bool
	replaced uint64
	asked    bool
	// removes is true once it is stored and its caller removes the replaced one.
	removes bool
	// stored receives the outcome; it is buffered, because the caller may have gone.
	stored chan outcome
	// earlier are those that wait for the same subject and are not sent, because this one would replace them.
	earlier []*batched
}

// Stored is what the server has done.
type Stored struct {
	// Sequence is that of the message; 0 if the server had one with its id, or was sent a later message in its place.
	Sequence uint64
	// Replaced is the sequence of the message of the same subject that was the last one before, 0 if there was none.
	Replaced uint64
	// Asked is true if the server was asked for Replaced: the subject may have earlier messages.
	Asked bool
}

type outcome struct {
	stored Stored
	err    error
}

// New returns a Batches of a connection, whose goroutines work counts. last returns the sequence of the last message of a subject, 0 for none.
func New(c *natsconn.Conn, work *sync.WaitGroup, last func(ctx context.Context, subject string) (uint64, error)) *Batches {
	return &Batches{conn: c, work: work, last: last, flying: map[string]bool{}, newest: map[string]uint64{}}
}

// Replace is Store for a message that takes the place of the one that its subject has. The caller removes that one, if Stored names it, and then calls
// Removed: until then further messages of the subject wait, so that few are stored at once. If the replaced one is not the one that is remembered,
// last is asked for it. Of messages of one subject that wait, only the newest is sent.
func (b *Batches) Replace(ctx context.Context, m *nats.Msg) (Stored, error) {
	return b.await(&batched{ctx: ctx, message: m, replaces: true})
}

// Removed lets further messages of a subject be stored, after the one that Replace returned was removed, or could not be.
func (b *Batches) Removed(subject string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.flying, subject)
	b.departNext()
}

// Store stores a message, with what its headers expect of the stream, and returns when the server has it on disk. After an error of ctx or
// of the connection it may be stored, but is not sent any more. m must not be used any more.
func (b *Batches) Store(ctx context.Context, m *nats.Msg) (Stored, error) {
	return b.await(&batched{ctx: ctx, message: m})
}

// Remember has the next Replace of a subject take the place of a message.
func (b *Batches) Remember(subject string, sequence uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.remember(subject, sequence)
}

func (b *Batches) remember(subject string, sequence uint64) {
	if len(b.newest) >= maxNewest { // what it forgets costs a conflict
		clear(b.newest)
	}
	b.newest[subject] = max(b.newest[subject], sequence)
}

// Forget has the next Replace of a subject not take the place of a message, such as one that was removed.
func (b *Batches) Forget(subject string, sequence uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.newest[subject] == sequence {
		delete(b.newest, subject)
	}
}

func (b *Batches) await(one *batched) (Stored, error) {
	one.stored = make(chan outcome, 1)
	// A batch that is not sent to its end stays in the server's memory for a while.
	tooLarge := int64(one.message.Size())+maxHeaders > b.conn.NC.MaxPayload()
	b.mu.Lock()
	if tooLarge || b.flights < maxFlights && !b.flying[one.message.Subject] {
		group := b.depart(one)
		b.mu.Unlock()
		b.send(one)
		b.land(group)
		got := <-one.stored
		return got.stored, got.err
	}
	b.waiting = append(b.waiting, one)
	b.mu.Unlock()
	select {
	case got := <-one.stored:
		return got.stored, got.err
	case <-one.ctx.Done():
	}
	if b.withdraw(one) {
		return Stored{}, one.ctx.Err()
	}
	got := <-one.stored // it is on its way: what the caller sends then comes after it
	return got.stored, got.err
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

// depart begins the flight of a group; the lock must be held.
func (b *Batches) depart(group ...*batched) []*batched {
	b.flights++
	for _, one := range group {
		b.flying[one.message.Subject] = true
		if one.replaces {
			one.replace(b.newest[one.message.Subject])
		}
	}
	return group
}

// replace has a message expect, and take the place of, the one with a sequence.
func (one *batched) replace(sequence uint64) {
	one.replaced = sequence
	if one.message.Header == nil {
		one.message.Header = nats.Header{}
	}
	one.message.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(sequence, 10))
}

// land ends the flight of a group, and starts the next one in its place.
func (b *Batches) land(group []*batched) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flights--
	for _, one := range group {
		if !one.removes {
			delete(b.flying, one.message.Subject)
		}
	}
	b.departNext()
}

// departNext starts the flight of those that wait, if there is room; the lock must be held.
func (b *Batches) departNext() {
	if b.flights >= maxFlights {
		return
	}
	if next := b.take(); len(next) > 0 {
		b.depart(next...)
		b.work.Go(func() {
			b.fly(next)
			b.land(next)
		})
	}
}

// take takes the messages that waited longest from those that wait, at most one of each subject that is not on its way; the lock must be held.
func (b *Batches) take() (group []*batched) {
	at := make(map[string]int, min(len(b.waiting), maxBatch))
	b.waiting = slices.DeleteFunc(b.waiting, func(one *batched) bool {
		subject := one.message.Subject
		i, again := at[subject]
		switch {
		case again && one.replaces && group[i].replaces:
			one.earlier = append(group[i].earlier, group[i])
			group[i].earlier, group[i] = nil, one
		case again || len(group) == maxBatch || b.flying[subject]:
			return false
		default:
			at[subject] = len(group)
			group = append(group, one)
		}
		return true
	})
	return group
}

// fly stores a group of messages, each of another subject.
func (b *Batches) fly(group []*batched) {
	if len(group) >= minBatch {
		first, refused, err := b.store(group)
		switch {
		case refused == nil:
			for i, one := range group {
				b.end(one, first+uint64(i), err)
			}
			return
		case natsconn.IsConflict(refused) && b.ask(group):
			b.fly(group)
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

// ask has the messages of a group replace those that the server has, and reports whether any of them did not before.
func (b *Batches) ask(group []*batched) bool {
	ctx, cancel := context.WithTimeout(context.Background(), natsconn.FirstAttemptTimeout)
	defer cancel()
	var asked atomic.Bool
	var calls sync.WaitGroup
	for _, one := range group {
		if one.replaces && !one.asked {
			calls.Go(func() {
				if b.askOne(ctx, one) == nil {
					asked.Store(true)
				}
			})
		}
	}
	calls.Wait()
	return asked.Load()
}

func (b *Batches) askOne(ctx context.Context, one *batched) error {
	last, err := b.last(ctx, one.message.Subject)
	if err == nil {
		one.asked = true
		one.replace(last)
	}
	return err
}

func (b *Batches) send(one *batched) {
	ctx := one.ctx
	if len(one.earlier) > 0 { // it is of many callers, who send again what is not answered
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), natsconn.FirstAttemptTimeout)
		defer cancel()
	}
	ack, err := b.conn.Publish(ctx, one.message)
	for one.replaces && natsconn.IsConflict(err) {
		if err = b.askOne(ctx, one); err == nil {
			ack, err = b.conn.Publish(ctx, one.message)
		}
	}
	if err != nil || ack.Duplicate {
		b.end(one, 0, err)
		return
	}
	b.end(one, ack.Sequence, nil)
}

// end tells the callers of a message its outcome.
func (b *Batches) end(one *batched, sequence uint64, err error) {
	b.mu.Lock()
	switch {
	case natsconn.IsConflict(err):
		delete(b.newest, one.message.Subject)
	case err == nil && sequence > 0:
		b.remember(one.message.Subject, sequence)
		one.removes = one.replaced > 0
	}
	b.mu.Unlock()
	for _, earlier := range one.earlier {
		earlier.stored <- outcome{err: err}
	}
	if err != nil {
		sequence = 0
	}
	one.stored <- outcome{Stored{sequence, one.replaced, one.asked}, err}
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
	return ok && (api.ErrorCode == codeDuplicate || natsconn.IsConflict(refused))
}

// store stores messages as one batch, with sequences that begin with first. refused is why the server did not store it, or errNotSent: none is stored, and after errNoBatch any may be.
// After err all or none are.
func (b *Batches) store(group []*batched) (first uint64, refused, err error) {
	id := nuid.Next()
	ctx, cancel := context.WithTimeout(context.Background(), natsconn.FirstAttemptTimeout) // it is of many callers, who send again what is not answered
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
				Error    *jetstream.APIError `json:"error"`
				Batch    string              `json:"batch"`
				Sequence uint64              `json:"seq"`
			}
			if err = json.Unmarshal(got.Data, &answer); answer.Error != nil {
				refused = answer.Error
			} else if err == nil && answer.Batch != id {
				refused = errNoBatch
			}
			first = answer.Sequence - uint64(len(group)-1) // the messages of a batch follow each other
			return err
		}
		return nil
	})
	if errors.Is(err, nats.ErrNoResponders) {
		return 0, errNotSent, nil
	}
	return first, refused, err
}

// RemoveReplaced removes the message in whose place another one was stored. If the server was asked for it, it also removes those before it, which
// stayed because their process ended, or was not answered. What stays until the next Request of the subject is processed as of its version.
func RemoveReplaced(ctx context.Context, in jetstream.Stream, subject string, done Stored) error {
	for sequence := done.Replaced; sequence < done.Sequence; {
		if err := in.DeleteMsg(ctx, sequence); err != nil && !natsconn.IsNotFound(err) {
			return err
		}
		if !done.Asked {
			return nil
		}
		first, err := in.GetMsg(ctx, 1, jetstream.WithGetMsgSubject(subject))
		if natsconn.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		sequence = first.Sequence
	}
	return nil
}

// LastSequence returns the sequence of the last message of a subject, 0 for none.
func LastSequence(ctx context.Context, in jetstream.Stream, subject string) (uint64, error) {
	last, err := in.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return last.Sequence, nil
}

// StoredBefore reports whether a message of a stream was stored before a call began, by the server's clock. The clocks of those that receive Requests can
// differ, so that the pending one of two seems to be the newer one.
func StoredBefore(ctx context.Context, in jetstream.Stream, stored, began time.Time) (bool, error) {
	info, err := in.Info(ctx)
	if err != nil {
		return false, natsconn.WrapError("reading the time of the pending request", err)
	}
	return stored.Before(info.TimeStamp.Add(-time.Since(began))), nil
}
