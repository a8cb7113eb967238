package alert

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"tutti/internal/base/retry"
	"tutti/internal/core"
)

const (
	// stopWait is how long a stop waits for messages in flight, releaseWait for the queue afterwards.
	stopWait    = 3 * time.Second
	releaseWait = 2 * time.Second
)

// worker is the state of a Service's goroutine.
type worker struct {
	*Service
	// leading is true while state is this process's, with the revision of the cell. dirty is true while it has changes that are not
	// in the cell, which was written at savedAt.
	leading  bool
	state    state
	revision uint64
	dirty    bool
	savedAt  time.Time
	// seen is the revision of another leader's state since seenAt.
	seen   uint64
	seenAt time.Time

	letters letterWindow
	// gaveUp holds the paused repositories of which a paused job has failed.
	gaveUp  map[string]struct{}
	reports reports
	// resumed holds since when a repository whose pause was an event is not paused any more.
	resumed map[string]time.Time
	// inFlight holds the ids of the messages in flight, by the keys of their targets.
	inFlight map[string]string
	results  chan result
}

// result is the end of an attempt to send a message.
type result struct {
	target target
	kind   Kind
	id     string
	answer Response
	err    error
}

func newWorker(s *Service) *worker {
	return &worker{
		Service: s, reports: newReports(s), inFlight: make(map[string]string), gaveUp: make(map[string]struct{}), resumed: make(map[string]time.Time),
		results: make(chan result, len(s.targets)), // one message in flight for each
	}
}

// run collects and sends until ctx ends.
func (w *worker) run(ctx context.Context) {
	sending, stopSending := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSending()
	tick := time.NewTicker(w.cfg.Poll)
	defer tick.Stop()
	for {
		if w.leading && !w.dirty {
			w.sendDue(sending)
		}
		select {
		case <-tick.C:
		case r := <-w.results:
			w.note(r)
		case <-ctx.Done():
			w.stop(sending, stopSending)
			return
		}
		w.step(ctx)
	}
}

// stop waits for messages in flight and releases the leadership.
func (w *worker) stop(ctx context.Context, stopSending context.CancelFunc) {
	timeout := time.AfterFunc(stopWait, stopSending)
	defer timeout.Stop()
	for len(w.inFlight) > 0 {
		w.note(<-w.results)
	}
	w.sends.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWait)
	defer cancel()
	w.reports.withdraw(ctx)
	// Twice, because the answer to the write before may be lost.
	for range 2 {
		if w.savedAt.IsZero() || !w.leads(ctx, time.Now().UTC()) {
			return // never led, or another process leads
		}
		w.state.Owner, w.dirty = "", true
		if w.save(ctx) {
			return
		}
	}
}

// step does all that is due except sending.
func (w *worker) step(ctx context.Context) {
	now := time.Now().UTC()
	w.reports.publish(ctx, now)
	if !w.leads(ctx, now) {
		return
	}
	if err := w.collect(ctx, now); err != nil && ctx.Err() == nil {
		w.log.WarnContext(ctx, "collecting alerts failed and is retried", "err", err)
	}
	w.prepare(now)
	w.save(ctx)
}

// leads reports whether this process is the leader. It takes over from one that has stopped.
func (w *worker) leads(ctx context.Context, now time.Time) bool {
	if w.leading {
		return true
	}
	text, revision, err := w.deps.Cells.Cell(ctx, cellState)
	if err != nil {
		w.log.DebugContext(ctx, "reading the state of alerts", "err", err)
		return false
	}
	found, err := decodeState(text)
	if err != nil {
		w.log.WarnContext(ctx, "the state of alerts cannot be decoded, and is replaced", "err", err)
		text, found = "", state{}
	}
	if revision != w.seen {
		w.seen, w.seenAt = revision, now
	}
	if found.Owner != "" && found.Owner != w.self && now.Sub(w.seenAt) < w.cfg.Takeover {
		return false
	}
	if err := w.adopt(ctx, found, text == ""); err != nil {
		w.log.DebugContext(ctx, "taking over the alerts", "err", err)
		return false
	}
	w.revision, w.leading = revision, true
	return w.save(ctx)
}

// adopt makes s this process's state. The first state of all begins with the next event.
func (w *worker) adopt(ctx context.Context, s state, first bool) error {
	jobs, err := w.deps.Jobs.LastRevision(ctx)
	if err != nil {
		return err
	}
	letters, err := w.deps.Letters.LastSequence(ctx)
	if err != nil {
		return err
	}
	for _, p := range []struct {
		at   *uint64
		last uint64
	}{{&s.Jobs, jobs}, {&s.DeadLetters, letters}} {
		if first || *p.at > p.last { // beyond the last, the stream is of an older backup than the state
			*p.at = p.last
		}
	}
	if s.PausedJobs == nil {
		s.PausedJobs = make(map[string]pausedJob)
	}
	if s.Paused == nil {
		s.Paused = make(map[string]time.Time)
	}
	summaries := make(map[string]map[Kind]*pending) // without those of targets that were removed
	for _, t := range w.targets {
		if summaries[t.key] = s.Summaries[t.key]; summaries[t.key] == nil {
			summaries[t.key] = make(map[Kind]*pending)
		}
	}
	s.Summaries, s.Owner = summaries, w.self
	w.state, w.dirty = s, true
	w.letters.start(s.DeadLetters)
	return nil
}

// save writes the state if it has changed, or to show that the leader lives. It reports whether this process still leads.
func (w *worker) save(ctx context.Context) bool {
	now := time.Now()
	if !w.dirty && now.Sub(w.savedAt) < w.cfg.Takeover/4 {
		return true
	}
	w.state.Beat++
	text, err := json.Marshal(w.state)
	if err == nil {
		err = w.deps.Cells.SetCell(ctx, cellState, string(text), w.revision)
	}
	stored, revision := "", uint64(0)
	if err == nil {
		stored, revision, err = w.deps.Cells.Cell(ctx, cellState)
	}
	switch {
	case core.CodeOf(err) == core.CodeConflict, err == nil && stored != string(text):
		w.leading = false // or the answer to an earlier write was lost: then the next step adopts it
		return false
	case err != nil:
		if ctx.Err() == nil {
			w.log.WarnContext(ctx, "storing the state of alerts failed and is retried", "err", err)
		}
		return true
	}
	w.revision, w.savedAt, w.dirty = revision, now, false
	return true
}

// add adds an event to the summaries of the targets that want it.
func (w *worker) add(e Event) {
	for _, t := range w.targets {
		if !t.wants(e) {
			continue
		}
		p := w.state.Summaries[t.key][e.Kind]
		if p == nil {
			p = &pending{}
			w.state.Summaries[t.key][e.Kind] = p
		}
		p.Waiting.add(e)
		w.dirty = true
	}
}

// due returns the kind of message that may be sent to a target now.
func (w *worker) due(t target, now time.Time) (Kind, *pending) {
	if _, busy := w.inFlight[t.key]; busy {
		return "", nil
	}
	farthest := max(t.MinInterval, w.cfg.RetryMax, maxRetryAfter)
	for _, kind := range Kinds() {
		if p := w.state.Summaries[t.key][kind]; p != nil && p.due(now, farthest) {
			return kind, p
		}
	}
	return "", nil
}

// prepare makes a message of what is due for each target, which is sent once it is stored.
func (w *worker) prepare(now time.Time) {
	for _, t := range w.targets {
		if _, p := w.due(t, now); p != nil && p.Sending == nil {
			summary := p.Waiting
			p.Sending, p.ID, p.Waiting = &summary, rand.Text(), Summary{}
			w.dirty = true
		}
	}
}

// sendDue starts to send the messages that are due and stored.
func (w *worker) sendDue(ctx context.Context) {
	now := time.Now().UTC()
	for _, t := range w.targets {
		kind, p := w.due(t, now)
		if p == nil || p.Sending == nil {
			continue
		}
		id := p.ID
		body, err := newMessage(id, kind, *p.Sending, w.cfg.PublicURL).encode(t.Format)
		w.inFlight[t.key] = id
		w.sends.Go(func() {
			r := result{target: t, kind: kind, id: id, err: err}
			if err == nil {
				r.answer, r.err = t.sender.send(ctx, t.Target, body)
			}
			w.results <- r
		})
	}
}

// note records the result of an attempt.
func (w *worker) note(r result) {
	delete(w.inFlight, r.target.key)
	log := w.log.With("target", r.target.name, "event", string(r.kind))
	next := time.Now().UTC().Add(r.target.MinInterval)
	var p *pending
	if w.leading {
		p = w.state.Summaries[r.target.key][r.kind]
	}
	if p == nil || p.ID != r.id || p.Sending == nil {
		p = &pending{Sending: &Summary{}} // another process leads now, and sends it
	}
	count := p.Sending.Count
	w.dirty = true
	var rejected rejectedError
	switch {
	case r.err == nil:
		w.cfg.Metrics.count(resultSent)
		log.Debug("alert sent", "count", count)
		p.ended(next)
	case errors.As(r.err, &rejected):
		w.cfg.Metrics.count(resultRejected)
		log.Error("an alert was rejected and is dropped; check the configuration with tutti alerts test", "count", count, "err", r.err)
		p.ended(next)
	default:
		w.cfg.Metrics.count(resultFailed)
		wait := max(retry.Delay(p.Failures, w.cfg.RetryMin, w.cfg.RetryMax), r.answer.retryAfter)
		log.Warn("sending an alert failed and is retried", "count", count, "pause", wait, "err", r.err)
		p.NotBefore = time.Now().UTC().Add(wait)
		p.Failures++
	}
}

// collect adds what has happened since the last time.
func (w *worker) collect(ctx context.Context, now time.Time) error {
	jobs := w.deps.Jobs.EachChangedAfter(ctx, w.state.Jobs, func(revision uint64, job core.Job) error {
		w.addJob(job)
		w.state.Jobs, w.dirty = revision, true
		return nil
	})
	letters := w.collectLetters(ctx)
	pauses := w.collectPauses(ctx, now)
	return errors.Join(jobs, letters, pauses)
}

// addJob adds the end of a job, and notes whether it is paused.
func (w *worker) addJob(job core.Job) {
	if _, was := w.state.PausedJobs[job.ID]; was && job.State == core.JobFailed {
		w.gaveUp[job.Repository] = struct{}{}
	}
	delete(w.state.PausedJobs, job.ID)
	e := Event{Repository: job.Repository, Organization: job.Organization, JobID: job.ID}
	if job.EndedAt != nil {
		e.At = *job.EndedAt
	}
	if drift := job.Totals.Drift; job.State.Final() && drift.Found() > 0 {
		found := e
		found.Kind, found.Hint = Drift, drift.String()
		w.add(found)
	}
	switch job.State {
	case core.JobPaused:
		reason := ""
		if job.Pause != nil {
			reason = job.Pause.Reason
		}
		w.state.PausedJobs[job.ID] = pausedJob{truncated(job.Repository, maxExampleTextBytes), truncated(reason, maxExampleTextBytes)}
		return
	case core.JobFailed:
		e.Kind = JobFailed
	case core.JobPartial:
		e.Kind = JobPartial
	default:
		return
	}
	if job.Error != nil {
		e.Reason, e.Hint = job.Error.Code, job.Error.Message
	}
	w.add(e)
}

// letterWindow finds out which dead letters are new: one that replaces another is not, unless the other one was replaced before it
// was read.
type letterWindow struct {
	// Before from all were read, and none was replaced unread. counted holds the first sequences that were counted since.
	from    uint64
	counted map[uint64]struct{}
}

// start forgets everything and begins after a position at which all dead letters were read.
func (l *letterWindow) start(position uint64) {
	l.from, l.counted = position, make(map[uint64]struct{})
}

// isNew reports whether a dead letter is new, once.
func (l *letterWindow) isNew(first uint64) bool {
	if _, counted := l.counted[first]; counted || first <= l.from {
		return false
	}
	l.counted[first] = struct{}{}
	return true
}

// collectLetters adds new dead letters.
func (w *worker) collectLetters(ctx context.Context) error {
	read := make(map[string]int) // examples, by repository
	position, err := w.deps.Letters.EachAfter(ctx, w.state.DeadLetters, func(l Letter) {
		if !w.letters.isNew(l.First) {
			return
		}
		e := Event{Kind: DeadLetters, At: l.StoredAt, Repository: l.Repository, Reason: l.Reason, DeadLetterID: l.ID}
		if read[l.Repository] < maxExamples {
			read[l.Repository]++
			if d, err := l.Read(ctx); err == nil {
				e.Organization, e.RecordID, e.JobID, e.Hint = d.Organization, d.RecordID, d.JobID, d.Hint
			}
		}
		w.add(e)
	})
	if position != w.state.DeadLetters {
		w.state.DeadLetters, w.dirty = position, true
	}
	if err == nil {
		w.letters.start(position) // everything that was stored until now was read
	}
	return err
}

// collectPauses adds pauses that began or ended.
func (w *worker) collectPauses(ctx context.Context, now time.Time) error {
	paused, starting, err := w.reports.paused(ctx, now)
	if err != nil {
		return err
	}
	for _, job := range w.state.PausedJobs {
		paused[job.Repository] = job.Reason
	}
	for code, reason := range paused {
		if _, known := w.state.Paused[code]; !known {
			w.state.Paused[code], w.dirty = now, true
			w.add(Event{Kind: RepositoryPaused, At: now, Repository: code, Reason: reason})
		}
	}
	for code, since := range w.state.Paused {
		if _, still := paused[code]; still || slices.Contains(starting, code) {
			delete(w.resumed, code)
			continue
		}
		resumed, known := w.resumed[code]
		if !known {
			w.resumed[code] = now
			continue
		}
		if now.Sub(resumed) < 2*w.cfg.Poll { // another process may still be paused, and report that with its next poll
			continue
		}
		delete(w.resumed, code)
		delete(w.state.Paused, code)
		w.dirty = true
		reason := "was paused for " + resumed.Sub(since).Round(time.Second).String()
		if _, failed := w.gaveUp[code]; failed {
			reason += "; a job that waited for it has failed"
		}
		w.add(Event{Kind: RepositoryResumed, At: resumed, Repository: code, Reason: reason})
	}
	maps.DeleteFunc(w.gaveUp, func(code string, _ struct{}) bool {
		_, waiting := w.state.Paused[code]
		return !waiting
	})
	return nil
}
