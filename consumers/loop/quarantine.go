package loop

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"tutti/internal/core"
)

const (
	// suspectDeliveries is the delivery from which on a Request may be the one that crashed the previous processes.
	suspectDeliveries = 3
	// suspectWindow is how long after the start, in ack waits, the Requests that were in flight in the previous process are
	// redelivered.
	suspectWindow = 3
	// suspectDelay lets other messages end before a suspect record is processed, and pagesSuspectDelay also records before a
	// page is.
	suspectDelay      = time.Second
	pagesSuspectDelay = 2 * time.Second
	// suspectExpiry is how long a Request stays the suspect that was processed alone and did not end. A supervisor may wait
	// minutes before it restarts a process that crashes repeatedly.
	suspectExpiry = 15 * time.Minute
)

// quarantine processes likely poison messages of one class of a repository's Requests alone after a crash. Each class has
// its own: a page may wait for records that its sweep requests.
type quarantine struct {
	l    *Loop
	cell string
	// delay is how long other messages have to end before the suspect is processed.
	delay time.Duration
	lock  *semaphore.Weighted // other messages share it, a suspect holds it exclusively
	// loading is held while suspect is loaded, and loaded set then.
	loading *semaphore.Weighted
	loaded  bool
	// suspect names the Request that was processed alone when the last process ended, "" when there is none.
	suspect string
}

// maxShared is the number of Requests that may share the lock: any number.
const maxShared = 1 << 30

func newQuarantine(l *Loop, class core.Class) *quarantine {
	delay := suspectDelay
	if class == core.ClassPages {
		delay = pagesSuspectDelay
	}
	return &quarantine{
		l: l, cell: "suspect." + string(class) + "." + base64.RawURLEncoding.EncodeToString([]byte(l.cfg.Repository)),
		delay: delay, lock: semaphore.NewWeighted(maxShared), loading: semaphore.NewWeighted(1),
	}
}

// active reports whether the messages that were in flight in the previous process are redelivered now.
func (s *quarantine) active() bool {
	return time.Since(s.l.startedAt) < suspectWindow*s.l.cfg.AckWait
}

// quarantineSuspects wraps handle so that a message is processed alone that may have ended the previous processes: it was
// delivered repeatedly, and this process has just started. Most of these messages were only in flight beside the poison
// message. So nothing is processed beside a suspect, not even new messages: a page that is reread publishes its successor
// anew.
func (s *quarantine) quarantineSuspects(handle Handler) Handler {
	return func(ctx context.Context, m core.Message, free func()) {
		l := s.l
		if !s.active() {
			handle(ctx, m, free)
			return
		}
		suspect, err := s.lastSuspect(ctx)
		mine := suspect != "" && suspect == suspectKey(m)
		switch {
		case err != nil:
			s.requeueUnprocessed(ctx, m)
		case mine: // it delays no other message, and each of its deliveries counts until the queue drops it
			if l.Sleep(s.delay) != nil {
				s.requeueUnprocessed(ctx, m)
				return
			}
			s.runAlone(ctx, m, free, handle)
		case m.Deliveries() < suspectDeliveries, suspect != "" && m.Deliveries() <= l.cfg.MaxDeliver/2:
			if s.lock.Acquire(l.draining, 1) != nil {
				s.requeueUnprocessed(ctx, m)
				return
			}
			defer s.lock.Release(1)
			handle(ctx, m, free)
		default:
			s.runAlone(ctx, m, free, handle)
		}
	}
}

// runAlone processes m while no other message of the class is, and stores its key in the cell until it has ended. So the
// next process knows the suspect: it processes all others as usual, and the suspect once they have had time to end.
func (s *quarantine) runAlone(ctx context.Context, m core.Message, free func(), handle Handler) {
	if s.lock.Acquire(s.l.draining, maxShared) != nil {
		s.requeueUnprocessed(ctx, m)
		return
	}
	defer s.lock.Release(maxShared)
	s.storeSuspect(ctx, suspectKey(m))
	handle(ctx, m, free)
	s.storeSuspect(ctx, "")
}

// requeueUnprocessed requeues a message that was not processed.
func (s *quarantine) requeueUnprocessed(ctx context.Context, m core.Message) {
	s.l.Release(m)
	s.l.RequeueNow(ctx, m)
}

// suspectKey returns the name of a record, or of a page of a job, in the cell.
func suspectKey(m core.Message) string {
	req := m.Request()
	what := fmt.Appendf(nil, "%q %q", req.Organization, req.RecordID)
	if req.Page != nil {
		what = fmt.Appendf(nil, "%q %q %d", req.Organization, req.JobID, req.Page.Number)
	}
	return base64.RawURLEncoding.EncodeToString(what)
}

// lastSuspect returns the Request that ended the last process, which the first caller loads. Its error is that of ctx.
func (s *quarantine) lastSuspect(ctx context.Context) (string, error) {
	if err := s.loading.Acquire(ctx, 1); err != nil {
		return "", err
	}
	defer s.loading.Release(1)
	if !s.loaded {
		s.suspect, s.loaded = s.loadSuspect(ctx), true
	}
	return s.suspect, nil
}

// loadSuspect returns the Request that ended the last process, "" when unknown: then the candidates are processed one after
// the other.
func (s *quarantine) loadSuspect(ctx context.Context) string {
	content, _, err := s.l.cells.Cell(ctx, s.cell)
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

// storeSuspect stores the name of a suspect, or that there is none. A failure costs no more than another attempt.
func (s *quarantine) storeSuspect(ctx context.Context, name string) {
	ctx = context.WithoutCancel(ctx)
	content := ""
	if name != "" {
		content = name + " " + strconv.FormatInt(time.Now().Unix(), 10)
	}
	_, revision, err := s.l.cells.Cell(ctx, s.cell)
	if err == nil {
		err = s.l.cells.SetCell(ctx, s.cell, content, revision)
	}
	if err != nil && core.CodeOf(err) != core.CodeConflict {
		s.l.cfg.Logger.Info("storing the name of a quarantined request", "err", err)
	}
}
