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
	// suspectPause lets the others end before the suspect is worked on.
	suspectPause = time.Second
	// suspectKept is how long a Request that was worked on alone, and did not end, is held to be the one. A supervisor may
	// leave a process that ends again and again alone for minutes.
	suspectKept = 15 * time.Minute
)

// suspicions are what a repository knows of the Request that ended the process before this one.
type suspicions struct {
	turn *semaphore.Weighted // of turns: others share it, a suspect takes it whole
	once sync.Once           // reads accused
	// accused names the Request that was worked on alone when the last process ended, "" when there is none.
	accused string
}

// turns is how many Requests may be worked on beside each other, so long as there may be suspects: any number.
const turns = 1 << 30

func newSuspicions() *suspicions { return &suspicions{turn: semaphore.NewWeighted(turns)} }

// wary tells whether this process has just begun: what ended those before it comes again now.
func (r *repository) wary() bool { return time.Since(r.c.startedAt) < suspectWindow*r.c.cfg.AckWait }

// working is what is done with a message in hand (pull).
type working func(ctx context.Context, m core.Message, free func())

// warily lets a message that may be what ended the processes before this one be worked on alone: it was in hand again and
// again, and this process has just begun. Most of them only stood beside the one that did it. So nothing else is worked
// on beside a suspect, also nothing that comes for the first time: a page that is read again publishes its successor anew.
func (r *repository) warily(work working) working {
	return func(ctx context.Context, m core.Message, free func()) {
		if !r.wary() {
			work(ctx, m, free)
			return
		}
		s := r.suspicions
		s.once.Do(func() { s.accused = r.suspect(ctx) })
		mine := s.accused != "" && s.accused == suspectOf(m)
		switch {
		case mine: // nobody waits for it, and each of its deliveries counts until it is given up
			if sleep(r.c.draining, suspectPause) != nil {
				r.comeAgain(ctx, m)
				return
			}
			r.workAlone(ctx, m, free, work)
		case m.Deliveries() < suspectDeliveries, s.accused != "" && m.Deliveries() <= r.c.cfg.MaxDeliver/2:
			if s.turn.Acquire(r.c.draining, 1) != nil {
				r.comeAgain(ctx, m)
				return
			}
			defer s.turn.Release(1)
			work(ctx, m, free)
		default:
			r.workAlone(ctx, m, free, work)
		}
	}
}

// workAlone works on m beside nothing else, and notes it in a slot of the queue before and until it has ended. So the next
// process knows which one it was: it works on all others as if they were new, and on that one when they have had a moment
// to end.
func (r *repository) workAlone(ctx context.Context, m core.Message, free func(), work working) {
	if r.suspicions.turn.Acquire(r.c.draining, turns) != nil {
		r.comeAgain(ctx, m)
		return
	}
	defer r.suspicions.turn.Release(turns)
	r.setSuspect(ctx, suspectOf(m))
	work(ctx, m, free)
	r.setSuspect(ctx, "")
}

// comeAgain gives a message back that was not worked on.
func (r *repository) comeAgain(ctx context.Context, m core.Message) {
	r.c.keeper.release(m)
	r.giveBack(context.WithoutCancel(ctx), m, 0)
}

func (r *repository) suspectSlot() string {
	return "suspect." + base64.RawURLEncoding.EncodeToString([]byte(r.Code))
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

// suspect gives the Request that ended the last process, "" where that is not known: then those that may have are worked
// on one after the other.
func (r *repository) suspect(ctx context.Context) string {
	content, _, err := r.c.deps.Slots.Slot(ctx, r.suspectSlot())
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

// setSuspect notes a Request, or that there is none. What goes wrong costs no more than another try.
func (r *repository) setSuspect(ctx context.Context, name string) {
	ctx = context.WithoutCancel(ctx)
	content := ""
	if name != "" {
		content = name + " " + strconv.FormatInt(time.Now().Unix(), 10)
	}
	_, revision, err := r.c.deps.Slots.Slot(ctx, r.suspectSlot())
	if err == nil {
		err = r.c.deps.Slots.SetSlot(ctx, r.suspectSlot(), content, revision)
	}
	if err != nil && core.CodeOf(err) != core.CodeConflict {
		r.log.Info("noting what is worked on alone", "err", err)
	}
}
