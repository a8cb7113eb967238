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
	// suspectPause lets the others end before a record that is suspected is worked on, and records before a page is.
	suspectPause = time.Second
	// suspectKept is how long a Request that was worked on alone, and did not end, is held to be the one. A supervisor may
	// leave a process that ends again and again alone for minutes.
	suspectKept = 15 * time.Minute
)

// suspicions are what is known of one class of a repository's Requests, and of which of them ended the process before this
// one. Each class has its own: a page may wait for records that its sweep asks for.
type suspicions struct {
	r    *repository
	slot string
	// pause is how long the others have to end before the one that is suspected.
	pause time.Duration
	turn  *semaphore.Weighted // of turns: others share it, a suspect takes it whole
	once  sync.Once           // reads accused
	// accused names the Request that was worked on alone when the last process ended, "" when there is none.
	accused string
}

// turns is how many Requests may be worked on beside each other, so long as there may be suspects: any number.
const turns = 1 << 30

func (r *repository) newSuspicions(class core.Class, pause time.Duration) *suspicions {
	return &suspicions{
		r: r, slot: "suspect." + string(class) + "." + base64.RawURLEncoding.EncodeToString([]byte(r.Code)),
		pause: pause, turn: semaphore.NewWeighted(turns),
	}
}

// wary reports whether this process has just begun: what ended those before it comes again now.
func (r *repository) wary() bool { return time.Since(r.c.startedAt) < suspectWindow*r.c.cfg.AckWait }

// working is what is done with a message in hand (pull).
type working func(ctx context.Context, m core.Message, free func())

// warily lets a message that may be what ended the processes before this one be worked on alone: it was in hand again and
// again, and this process has just begun. Most of them only stood beside the one that did it. So nothing else is worked
// on beside a suspect, also nothing that comes for the first time: a page that is read again publishes its successor anew.
func (s *suspicions) warily(work working) working {
	return func(ctx context.Context, m core.Message, free func()) {
		r := s.r
		if !r.wary() {
			work(ctx, m, free)
			return
		}
		s.once.Do(func() { s.accused = s.last(ctx) })
		mine := s.accused != "" && s.accused == suspectOf(m)
		switch {
		case mine: // nobody waits for it, and each of its deliveries counts until it is given up
			if sleep(r.c.draining, s.pause) != nil {
				r.comeAgain(ctx, m)
				return
			}
			s.workAlone(ctx, m, free, work)
		case m.Deliveries() < suspectDeliveries, s.accused != "" && m.Deliveries() <= r.c.cfg.MaxDeliver/2:
			if s.turn.Acquire(r.c.draining, 1) != nil {
				r.comeAgain(ctx, m)
				return
			}
			defer s.turn.Release(1)
			work(ctx, m, free)
		default:
			s.workAlone(ctx, m, free, work)
		}
	}
}

// workAlone works on m beside nothing else, and notes it in a slot of the queue before and until it has ended. So the next
// process knows which one it was: it works on all others as if they were new, and on that one when they have had a moment
// to end.
func (s *suspicions) workAlone(ctx context.Context, m core.Message, free func(), work working) {
	if s.turn.Acquire(s.r.c.draining, turns) != nil {
		s.r.comeAgain(ctx, m)
		return
	}
	defer s.turn.Release(turns)
	s.note(ctx, suspectOf(m))
	work(ctx, m, free)
	s.note(ctx, "")
}

// comeAgain returns a message back that was not worked on.
func (r *repository) comeAgain(ctx context.Context, m core.Message) {
	r.c.keeper.release(m)
	r.giveBack(context.WithoutCancel(ctx), m, 0)
}

// suspectOf names a record, or a page of a job, as the slot does.
func suspectOf(m core.Message) string {
	req := m.Request()
	what := fmt.Appendf(nil, "%q %q", req.Organization, req.RecordID)
	if req.Page != nil {
		what = fmt.Appendf(nil, "%q %q %d", req.Organization, req.JobID, req.Page.Number)
	}
	return base64.RawURLEncoding.EncodeToString(what)
}

// last returns the Request that ended the last process, "" where that is not known: then those that may have are worked
// on one after the other.
func (s *suspicions) last(ctx context.Context) string {
	content, _, err := s.r.c.deps.Slots.Slot(ctx, s.slot)
	if err != nil {
		return ""
	}
	name, at, _ := strings.Cut(content, " ")
	noted, err := strconv.ParseInt(at, 10, 64)
	if err != nil || time.Since(time.Unix(noted, 0)) > suspectKept {
		return ""
	}
	return name
}

// note notes a Request, or that there is none. What goes wrong costs no more than another try.
func (s *suspicions) note(ctx context.Context, name string) {
	ctx = context.WithoutCancel(ctx)
	content := ""
	if name != "" {
		content = name + " " + strconv.FormatInt(time.Now().Unix(), 10)
	}
	_, revision, err := s.r.c.deps.Slots.Slot(ctx, s.slot)
	if err == nil {
		err = s.r.c.deps.Slots.SetSlot(ctx, s.slot, content, revision)
	}
	if err != nil && core.CodeOf(err) != core.CodeConflict {
		s.r.log.Info("noting what is worked on alone", "err", err)
	}
}
