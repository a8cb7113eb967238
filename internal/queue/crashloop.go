package queue

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/core"
)

const (
	crashLoopConsumer = "crash-loops"
	// minRest and maxRest bound the rest after a fault of a background loop.
	minRest       = 100 * time.Millisecond
	maxRest       = 10 * time.Second
	crashLoopHint = "the record was begun many times and never ended: a process may have died of it each time"
)

// advisory is what of the server's MAX_DELIVERIES advisory is needed.
type advisory struct {
	Stream     string `json:"stream"`
	Consumer   string `json:"consumer"`
	Sequence   uint64 `json:"stream_seq"`
	Deliveries int    `json:"deliveries"`
}

// collectCrashLoops ends Requests that were delivered too often, until ctx ends: they become dead letters. The server says
// so only once, therefore its word goes through a stream of its own.
func (q *Queue) collectCrashLoops(ctx context.Context) {
	q.keep(ctx, "advisories", q.followAdvisories)
}

// keep runs follow, again after every fault, until ctx ends. The rests in between grow while it ends at once.
func (q *Queue) keep(ctx context.Context, what string, follow func(context.Context) error) {
	rest := minRest
	for ctx.Err() == nil {
		if _, connected := q.link.await(ctx, q.nc, time.Now().Add(watchWait), nil); !connected {
			continue
		}
		began := time.Now()
		err := follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > maxRest {
			rest = minRest
		}
		if q.nc.IsConnected() && !errors.Is(err, errLinkChanged) {
			q.log.Warn("watch of a stream begins again", "watch", what, "err", err)
		}
		if pause(ctx, rest/2+rand.N(rest)) != nil {
			return
		}
		rest = min(2*rest, maxRest)
	}
}

func (q *Queue) followAdvisories(ctx context.Context) error {
	if _, err := q.stream(ctx, q.cfg.advisoriesConfig()); err != nil {
		return err
	}
	consumer, err := q.js.CreateOrUpdateConsumer(ctx, streamAdvisories, jetstream.ConsumerConfig{
		Durable: crashLoopConsumer, FilterSubject: subjectAdvisories, AckPolicy: jetstream.AckExplicitPolicy, AckWait: defaultAckWait, MaxAckPending: maxPull,
	})
	if err != nil {
		return err
	}
	p, err := newPuller(q.nc, q.link, streamAdvisories, consumer.CachedInfo().Name)
	if err != nil {
		return err
	}
	defer p.close()
	for {
		messages, err := p.next(ctx, budget{messages: maxPull / 8}, watchWait)
		if err != nil {
			return err
		}
		for _, m := range messages {
			if err := q.handleAdvisory(ctx, m); err != nil {
				return err
			}
		}
	}
}

func (q *Queue) handleAdvisory(ctx context.Context, m *nats.Msg) error {
	var a advisory
	if err := json.Unmarshal(m.Data, &a); err != nil {
		q.log.Error("advisory of the queue not understood", "err", err)
		return tell(ctx, q.nc, m.Reply, "+TERM")
	}
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	switch err := q.endCrashLoop(ctx, a, meta.NumDelivered > 1); {
	case errors.Is(err, errNotNoted):
		return m.Respond(nakPayload(q.noteTime(a.Consumer)))
	case core.CodeOf(err) == core.CodeOverloaded:
		return m.Respond(nakPayload(putBack))
	case err != nil:
		return errors.Join(err, m.Respond(nakPayload(putBack)))
	}
	return tell(ctx, q.nc, m.Reply, "+ACK")
}

// noteTime returns how long the process that had the last delivery of a durable consumer's message may take to note that it
// waits: an ack wait, as after an interruption of its connection it notes so within a quarter of one.
func (q *Queue) noteTime(durable string) time.Duration {
	for _, c := range q.openConsumers() {
		if c.cfg.Durable == durable {
			return c.cfg.AckWait
		}
	}
	return defaultAckWait
}

// endCrashLoop ends the message of an advisory. One that was replaced or acked since is gone, which is success. errNotNoted
// when it becomes a dead letter, unless that is sure.
func (q *Queue) endCrashLoop(ctx context.Context, a advisory, sure bool) error {
	m, err := q.requests.GetMsg(ctx, a.Sequence)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return fault("reading a request", err)
	}
	return q.endDeliveries(ctx, m, a.Deliveries, sure)
}

// bury stores a dead letter of m and then removes m.
func (q *Queue) bury(ctx context.Context, m *jetstream.RawStreamMsg, reason, hint string, deliveries int) error {
	r, err := decodeRequest(m.Subject, m.Data)
	letter := requestLetter(r, reason, hint, r.Attempts+deliveries)
	subject := letterSubject(letter)
	if err != nil {
		letter = unreadableLetter(m.Subject, m.Data, reason, hint)
		letter.Attempts = deliveries
		subject = unreadableSubject(letter, m.Subject)
	}
	if err == nil && r.Scope == core.ScopeRecords {
		err = q.buryRecords(ctx, r, letter)
	} else {
		err = q.letters.put(ctx, subject, letter)
	}
	if err != nil {
		return err
	}
	if err := q.requests.DeleteMsg(ctx, m.Sequence); err != nil && !isNotFound(err) {
		if stillThere, getErr := q.requests.GetMsg(ctx, m.Sequence); getErr == nil && stillThere != nil {
			return fault("removing a request", err)
		}
	}
	q.log.Log(ctx, burialLevel(reason), "request moved to the dead letters", "reason", reason,
		"repository", letter.Repository, "organization", letter.Organization, "record_id", letter.RecordID,
		"request_id", r.ID, "job_id", letter.JobID)
	return nil
}

// buryRecords stores a dead letter like the given one for each record of r.
func (q *Queue) buryRecords(ctx context.Context, r core.Request, letter core.DeadLetter) error {
	for _, k := range r.Records {
		one := r.Record(k)
		letter.Organization, letter.RecordID, letter.Request = k.Organization, k.ID, &one
		if err := q.letters.Put(ctx, letter); err != nil {
			return err
		}
	}
	return nil
}

// burialLevel: a crash loop wants somebody's eye, a removed repository was somebody's wish.
func burialLevel(reason string) slog.Level {
	if reason == core.ReasonCrashLoop {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

const (
	// lagEvery is how often the metric of waiting messages is brought up to date.
	lagEvery = 5 * time.Second
	// strandedEvery is how often stranded messages are looked for; one is stranded that two looks see.
	strandedEvery = time.Minute
)

// look brings metrics up to date and finds stranded messages, until ctx ends.
func (q *Queue) look(ctx context.Context) {
	lag, stranded := time.NewTicker(lagEvery), time.NewTicker(strandedEvery)
	defer lag.Stop()
	defer stranded.Stop()
	var seen map[uint64]struct{}
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-lag.C:
			if q.metrics != nil {
				_, err = q.Pending(ctx)
			}
		case <-stranded.C:
			seen, err = q.buryStranded(ctx, seen)
		}
		if err != nil && ctx.Err() == nil {
			q.log.Debug("look at the queue failed", "err", err)
		}
	}
}

// buryStranded moves messages to the dead letters that were delivered for the last time but whose advisory was lost in
// a crash of the server: nobody would ever get them. They are still there although their consumer is done with them; seen
// holds those of the look before, since one that was acked this moment may still be there too. It gives those of this
// look.
func (q *Queue) buryStranded(ctx context.Context, seen map[uint64]struct{}) (map[uint64]struct{}, error) {
	now := make(map[uint64]struct{})
	for _, c := range q.openConsumers() {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		err := q.findStranded(ctx, c, func(m *jetstream.RawStreamMsg) error {
			if _, again := seen[m.Sequence]; !again {
				now[m.Sequence] = struct{}{}
				return nil
			}
			return q.endDeliveries(ctx, m, c.cfg.MaxDeliver, true)
		})
		cancel()
		if err != nil {
			return now, err
		}
	}
	return now, nil
}

func (q *Queue) openConsumers() []*Consumer {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := make([]*Consumer, 0, len(q.consumers))
	for c := range q.consumers {
		all = append(all, c)
	}
	return all
}

func (q *Queue) findStranded(ctx context.Context, c *Consumer, found func(*jetstream.RawStreamMsg) error) error {
	consumer, err := q.requests.Consumer(ctx, c.cfg.Durable)
	if err != nil {
		return err
	}
	state := consumer.CachedInfo()
	floor := state.AckFloor.Stream
	if state.NumAckPending == 0 {
		// The server does not always raise the floor over a message that it gave up on, but with nothing in hand all
		// that was delivered has ended.
		floor = max(floor, state.Delivered.Stream)
	}
	for _, filter := range c.cfg.FilterSubjects {
		for sequence := uint64(1); sequence <= floor; {
			m, err := q.requests.GetMsg(ctx, sequence, jetstream.WithGetMsgSubject(filter))
			if isNotFound(err) {
				break
			}
			if err != nil {
				return err
			}
			if m.Sequence > floor {
				break
			}
			if err := found(m); err != nil {
				return err
			}
			sequence = m.Sequence + 1
		}
	}
	return nil
}
