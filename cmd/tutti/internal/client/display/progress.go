package display

import (
	"cmp"
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"tutti/cmd/tutti/internal/client"
	"tutti/internal/base/order"
	"tutti/internal/core"
)

const (
	drawEvery    = 100 * time.Millisecond
	defaultEvery = 5 * time.Second
)

// Watcher reports the progress of a job; *client.Client is one.
type Watcher interface {
	// WatchJob calls each for all events of a job until it has ended.
	WatchJob(ctx context.Context, id string, each func(client.Event) error) (client.Job, error)
}

var _ Watcher = (*client.Client)(nil)

// Screen can be redrawn; *Terminal is one.
type Screen interface {
	// Size returns columns and rows currently.
	Size() (columns, rows int)
	// Colour reports whether colours may be used.
	Colour() bool
}

var _ Screen = (*Terminal)(nil)

// ProgressConfig configures Watch. The zero value writes lines.
type ProgressConfig struct {
	// Screen is the terminal to draw on. Default nil: a line for every change of state.
	Screen Screen
	// Every is the time between two lines of totals without a Screen. Default 5 s.
	Every time.Duration
}

// Watch shows the progress of a job on out, with a bar for each organization, until the job has ended, and returns it. Errors are those
// of watcher and of out; with an error, the job is the last one received, without its organizations.
func Watch(ctx context.Context, watcher Watcher, id string, out io.Writer, cfg ProgressConfig) (client.Job, error) {
	p := &progress{out: out, screen: cfg.Screen, rows: map[string]client.Organization{}}
	every := drawEvery
	if p.screen == nil {
		if every = cfg.Every; every <= 0 {
			every = defaultEvery
		}
	}
	ticker := time.NewTicker(every)
	done, ticked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ticked)
		for {
			select {
			case <-ticker.C:
				p.tick()
			case <-done:
				return
			}
		}
	}()
	job, err := watcher.WatchJob(ctx, id, p.update)
	ticker.Stop()
	close(done)
	<-ticked
	if p.screen != nil {
		p.tick()
	}
	if err != nil && p.job != nil {
		job = *p.job
	}
	if err == nil {
		err = p.err
	}
	return job, err
}

// progress is the received state of a job and how it is displayed.
type progress struct {
	out    io.Writer
	screen Screen

	mu sync.Mutex
	// job is nil until it is received.
	job  *client.Job
	rows map[string]client.Organization
	lost error
	// changed is set when the screen is outdated.
	changed bool
	// drawn is the number of lines of the last view.
	drawn int
	// err is the first error of out.
	err error
}

// update records an event, and writes a line for it without a screen.
func (p *progress) update(e client.Event) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Lost == nil && p.lost != nil {
		p.lost = nil
		p.line("tutti answers again")
	}
	switch {
	case e.Job != nil:
		before := p.job
		p.job = e.Job
		if before == nil || before.State != e.Job.State {
			p.line(jobLine(*e.Job))
		}
		if why := e.Job.Paused; before == nil && why != "" || before != nil && before.Paused != why {
			p.line(pausedLine(why))
		}
	case e.Organization != nil:
		before := p.rows[e.Organization.Organization]
		p.rows[e.Organization.Organization] = *e.Organization
		if before.State != e.Organization.State && e.Organization.State != core.JobQueued {
			p.line(organizationLine(*e.Organization))
		}
	case e.Lost != nil:
		if p.lost == nil {
			p.line(lostLine(e.Lost))
		}
		p.lost = e.Lost
	}
	p.changed = true
	return p.err
}

// tick draws what has changed, or writes the line of the totals without a screen.
func (p *progress) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.err != nil || p.job == nil:
	case p.screen == nil:
		if !p.job.State.Final() {
			p.line(p.totalsLine())
		}
	case p.changed:
		p.changed = false
		p.draw()
	}
}

// line writes a line when there is no screen.
func (p *progress) line(text string) {
	if p.screen != nil || p.err != nil {
		return
	}
	_, p.err = io.WriteString(p.out, text+"\n")
}

// ended counts the organizations that have ended.
func (p *progress) ended() int {
	n := 0
	if p.job != nil && p.job.OrganizationStates != nil {
		for state, organizations := range p.job.OrganizationStates {
			if state.Final() {
				n += organizations
			}
		}
		return n
	}
	for _, row := range p.rows {
		if row.State.Final() {
			n++
		}
	}
	return n
}

// sorted returns the organizations by name, or, with urgent, running ones first, then failed ones.
func (p *progress) sorted(urgent bool) []client.Organization {
	rows := make([]client.Organization, 0, len(p.rows))
	for _, row := range p.rows {
		rows = append(rows, row)
	}
	order.Sort(rows, func(a, b client.Organization) int {
		if urgent {
			if c := cmp.Compare(rank(a.State), rank(b.State)); c != 0 {
				return c
			}
		}
		return cmp.Compare(a.Organization, b.Organization)
	})
	return rows
}

// rank orders states by their importance for the user.
func rank(state core.JobState) int {
	return slices.Index([]core.JobState{
		core.JobRunning, core.JobFailed, core.JobPartial, core.JobCancelled, core.JobQueued, core.JobSucceeded,
	}, state)
}
