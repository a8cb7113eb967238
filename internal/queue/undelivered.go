package queue

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/base/retry"
	"tutti/internal/core"
	"tutti/internal/queue/natsconn"
)

const (
	// undeliveredInterval is how often the stream is searched for Requests that no consumer will deliver, undeliveredConfirm how long one
	// must have been there: a message that was acknowledged is removed a moment later.
	undeliveredInterval = 30 * time.Second
	undeliveredConfirm  = 2 * time.Second
	// maxUndelivered bounds the Requests that one search returns.
	maxUndelivered = 1000
)

// watchUndelivered publishes the Requests again that no consumer will deliver, until ctx ends.
//
// A consumer delivers the messages above its ack floor. The server may have messages below it: those that a limit of one message for each
// subject had removed before a crash, or that were in flight when another one was rolled up, both of earlier versions of tutti, or whose removal
// the machine's failure has undone. They would stay for ever.
func (q *Queue) watchUndelivered(ctx context.Context) {
	var before map[uint64]*jetstream.RawStreamMsg
	for {
		found, err := q.undelivered(ctx)
		if err == nil {
			err = q.publishUndelivered(ctx, found, before)
		}
		if err != nil && ctx.Err() == nil {
			q.log.Debug("searching for requests that are not delivered failed", "err", err)
		}
		before = found
		pause := undeliveredInterval
		if len(found) > 0 {
			pause = undeliveredConfirm
		}
		if retry.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// undelivered returns messages at or below the ack floor of the consumer of their subject, by sequence.
func (q *Queue) undelivered(ctx context.Context) (map[uint64]*jetstream.RawStreamMsg, error) {
	var consumers []*jetstream.ConsumerInfo
	list := q.requests.ListConsumers(ctx)
	for info := range list.Info() { // to its end: what sends the rest would wait for ever
		if _, ok := cutDurableName(info.Name); ok {
			consumers = append(consumers, info)
		}
	}
	if err := list.Err(); err != nil {
		return nil, natsconn.WrapError("listing the consumers", err)
	}
	found := make(map[uint64]*jetstream.RawStreamMsg)
	for _, info := range consumers {
		filters := info.Config.FilterSubjects
		if info.Config.FilterSubject != "" {
			filters = append(filters, info.Config.FilterSubject)
		}
		for _, filter := range filters {
			if err := q.addUndelivered(ctx, filter, info.AckFloor.Stream, found); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

func (q *Queue) addUndelivered(ctx context.Context, filter string, floor uint64, found map[uint64]*jetstream.RawStreamMsg) error {
	for next := uint64(1); next <= floor && len(found) < maxUndelivered; {
		m, err := q.requests.GetMsg(ctx, next, jetstream.WithGetMsgSubject(filter))
		if natsconn.IsNotFound(err) || err == nil && m.Sequence > floor {
			return nil
		}
		if err != nil {
			return natsconn.WrapError("reading a request", err)
		}
		found[m.Sequence] = m
		next = m.Sequence + 1
	}
	return nil
}

// publishUndelivered publishes those of found again that an earlier search had found too.
func (q *Queue) publishUndelivered(ctx context.Context, found, before map[uint64]*jetstream.RawStreamMsg) error {
	published := 0
	defer func() {
		if published > 0 {
			q.log.Warn("requests that the queue would not have delivered any more are processed", "requests", published)
			q.metrics.countUndelivered(published)
		}
	}()
	for sequence, m := range found {
		if earlier, ok := before[sequence]; !ok || !earlier.Time.Equal(m.Time) {
			continue
		}
		if err := q.publishAgain(ctx, m); err != nil {
			return err
		}
		delete(found, sequence)
		published++
	}
	return nil
}

// publishAgain stores the Request of m again, as of its version, in place of m, or removes m if its subject has a newer one.
func (q *Queue) publishAgain(ctx context.Context, m *jetstream.RawStreamMsg) error {
	r, err := decodeRequest(m.Subject, m.Data)
	if err != nil {
		return q.moveToDeadLetters(ctx, m, core.ReasonNotUnderstood, core.MessageOf(err), 0)
	}
	r.AsOf = versionOf(r, m.Time)
	r.Attempts++ // also, the server drops a Request of the outbox that has the id of m
	_, err = q.publishAfter(ctx, m.Subject, r, m.Sequence)
	if !natsconn.IsConflict(err) {
		return err
	}
	if err := q.requests.DeleteMsg(ctx, m.Sequence); err != nil && !natsconn.IsNotFound(err) {
		return natsconn.WrapError("removing a request", err)
	}
	return nil
}
