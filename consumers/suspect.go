package consumers

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

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

// suspicious tells whether m may be what ended the processes before this one: it was in hand again and again, and this
// process has just begun. Most of them only stood beside the one that did it.
func (r *repository) suspicious(m core.Message) bool {
	return m.Deliveries() >= suspectDeliveries && time.Since(r.c.startedAt) < suspectWindow*r.c.cfg.AckWait
}

// working is what is done with a message in hand (pull).
type working func(ctx context.Context, m core.Message, free func())

// warily lets a message that may be what ended the processes before this one be worked on alone.
func (r *repository) warily(work working) working {
	return func(ctx context.Context, m core.Message, free func()) {
		if r.suspicious(m) {
			r.workAlone(ctx, m, free, work)
			return
		}
		work(ctx, m, free)
	}
}

// workAlone works on suspicious Requests one after the other, and notes each in a slot of the queue before and until it
// has ended. So the next process knows which one it was: it works on all others as if they were new, and on that one when
// they have had a moment to end. Each of its deliveries counts until it is given up.
func (r *repository) workAlone(ctx context.Context, m core.Message, free func(), work working) {
	if r.suspects.Acquire(r.c.draining, 1) != nil {
		r.c.keeper.release(m)
		r.giveBack(context.WithoutCancel(ctx), m, 0)
		return
	}
	known, mine := r.suspect(ctx, m)
	switch {
	case known && !mine && m.Deliveries() <= r.c.cfg.MaxDeliver/2:
		r.suspects.Release(1)
		work(ctx, m, free)
		return
	case mine:
		r.suspects.Release(1) // nobody waits for the suspect
		if sleep(r.c.draining, suspectPause) != nil || r.suspects.Acquire(r.c.draining, 1) != nil {
			r.c.keeper.release(m)
			r.giveBack(context.WithoutCancel(ctx), m, 0)
			return
		}
	}
	defer r.suspects.Release(1)
	r.setSuspect(ctx, suspectOf(m))
	work(ctx, m, free)
	r.setSuspect(ctx, "")
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

// suspect tells whether it is known which Request ended the last process, and whether that is m's.
func (r *repository) suspect(ctx context.Context, m core.Message) (known, mine bool) {
	content, _, err := r.c.deps.Slots.Slot(ctx, r.suspectSlot())
	if err != nil {
		return false, false // then they are worked on one after the other
	}
	name, at, _ := strings.Cut(content, " ")
	noted, err := strconv.ParseInt(at, 10, 64)
	if name == "" || err != nil || time.Since(time.Unix(noted, 0)) > suspectKept {
		return false, false
	}
	return true, name == suspectOf(m)
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
