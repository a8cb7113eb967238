package consumers

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"tutti/internal/core"
)

const (
	// suspectDeliveries is how often a Request was in hand that may be what ended the processes before this one.
	suspectDeliveries = 3
	// suspectWindow, in ack waits, is how long after the start such Requests come: they are those that were in hand.
	suspectWindow = 3
	// suspectDelay lets the others end before a record that is suspected is worked on, and records before a page is.
	suspectDelay = time.Second
	// suspectExpiry is how long a Request that was worked on alone, and did not end, is held to be the one. A supervisor may
	// leave a process that ends again and again alone for minutes.
	suspectExpiry = 15 * time.Minute
)

// quarantine are what is known of one class of a repository's Requests, and of which of them ended the process before this
// one. Each class has its own: a page may wait for records that its sweep asks for.
type quarantine struct {
	r    *repository
	cell string
	// delay is how long the others have to end before the one that is suspected.
	delay time.Duration
	lock  *semaphore.Weighted // of turns: others share it, a suspect takes it whole
	once  sync.Once           // reads accused
	// suspect names the Request that was worked on alone when the last process ended, "" when there is none.
	suspect string
}

// maxShared is how many Requests may be worked on beside each other, so long as there may be suspects: any number.
const maxShared = 1 << 30

func (r *repository) newQuarantine(class core.Class, pause time.Duration) *quarantine {
	return &quarantine{
		r: r, cell: "suspect." + string(class) + "." + base64.RawURLEncoding.EncodeToString([]byte(r.Code)),
		delay: pause, lock: semaphore.NewWeighted(maxShared),
	}
}

// justStarted reports whether this process has just begun: what ended those before it comes again now.
func (r *repository) justStarted() bool {
	return time.Since(r.c.startedAt) < suspectWindow*r.c.cfg.AckWait
}

// handler is what is done with a message in hand (pull).
type handler func(ctx context.Context, m core.Message, free func())

// quarantineSuspects lets a message that may be what ended the processes before this one be worked on alone: it was in hand again and
// again, and this process has just begun. Most of them only stood beside the one that did it. So nothing else is worked
// on beside a suspect, also nothing that comes for the first time: a page that is read again publishes its successor anew.
func (s *quarantine) quarantineSuspects(work handler) handler {
	return func(ctx context.Context, m core.Message, free func()) {
		r := s.r
		if !r.justStarted() {
			work(ctx, m, free)
			return
		}
		s.once.Do(func() { s.suspect = s.loadSuspect(ctx) })
		mine := s.suspect != "" && s.suspect == suspectKey(m)
		switch {
		case mine: // nobody waits for it, and each of its deliveries counts until it is given up
			if sleep(r.c.draining, s.delay) != nil {
				r.requeueUnprocessed(ctx, m)
				return
			}
			s.runAlone(ctx, m, free, work)
		case m.Deliveries() < suspectDeliveries, s.suspect != "" && m.Deliveries() <= r.c.cfg.MaxDeliver/2:
			if s.lock.Acquire(r.c.draining, 1) != nil {
				r.requeueUnprocessed(ctx, m)
				return
			}
			defer s.lock.Release(1)
			work(ctx, m, free)
		default:
			s.runAlone(ctx, m, free, work)
		}
	}
}

// runAlone works on m beside nothing else, and notes it in a slot of the queue before and until it has ended. So the next
// process knows which one it was: it works on all others as if they were new, and on that one when they have had a moment
// to end.
func (s *quarantine) runAlone(ctx context.Context, m core.Message, free func(), work handler) {
	if s.lock.Acquire(s.r.c.draining, maxShared) != nil {
		s.r.requeueUnprocessed(ctx, m)
		return
	}
	defer s.lock.Release(maxShared)
	s.storeSuspect(ctx, suspectKey(m))
	work(ctx, m, free)
	s.storeSuspect(ctx, "")
}

// requeueUnprocessed returns a message back that was not worked on.
func (r *repository) requeueUnprocessed(ctx context.Context, m core.Message) {
	r.c.heartbeat.release(m)
	r.requeue(context.WithoutCancel(ctx), m, 0)
}

// suspectKey names a record, or a page of a job, as the slot does.
func suspectKey(m core.Message) string {
	req := m.Request()
	what := fmt.Appendf(nil, "%q %q", req.Organization, req.RecordID)
	if req.Page != nil {
		what = fmt.Appendf(nil, "%q %q %d", req.Organization, req.JobID, req.Page.Number)
	}
	return base64.RawURLEncoding.EncodeToString(what)
}

// loadSuspect returns the Request that ended the last process, "" where that is not known: then those that may have are worked
// on one after the other.
func (s *quarantine) loadSuspect(ctx context.Context) string {
	content, _, err := s.r.c.deps.Slots.Slot(ctx, s.cell)
	if err != nil {
		return ""
	}
	name, at, _ := strings.Cut(content, " ")
	noted, err := strconv.ParseInt(at, 10, 64)
	if err != nil || time.Since(time.Unix(noted, 0)) > suspectExpiry {
		return ""
	}
	return name
}

// storeSuspect notes a Request, or that there is none. What goes wrong costs no more than another try.
func (s *quarantine) storeSuspect(ctx context.Context, name string) {
	ctx = context.WithoutCancel(ctx)
	content := ""
	if name != "" {
		content = name + " " + strconv.FormatInt(time.Now().Unix(), 10)
	}
	_, revision, err := s.r.c.deps.Slots.Slot(ctx, s.cell)
	if err == nil {
		err = s.r.c.deps.Slots.SetSlot(ctx, s.cell, content, revision)
	}
	if err != nil && core.CodeOf(err) != core.CodeConflict {
		s.r.log.Info("noting what is worked on alone", "err", err)
	}
}
