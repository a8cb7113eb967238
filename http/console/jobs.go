package console

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"

	"tutti/http/api"
	"tutti/http/indexing"
	"tutti/http/server"
	"tutti/internal/core"
)

const (
	// listed is the number of jobs or dead letters of a page.
	listed = 25
	// parallelReads is how many jobs or catalogues are read at a time.
	parallelReads = 8
	// eventInterval is the minimum time between two events of a stream, keepAlive the maximum.
	eventInterval, keepAlive = 400 * time.Millisecond, 15 * time.Second
	eventTimeout             = 30 * time.Second
)

// jobBodies returns jobs with their first organizations, at most a number, progress and rate.
func (s *jobPages) jobBodies(ctx context.Context, jobs []core.Job, organizations int) ([]indexing.JobBody, error) {
	bodies := make([]indexing.JobBody, len(jobs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelReads)
	for i, job := range jobs {
		group.Go(func() (err error) {
			bodies[i], err = indexing.ReadJobBody(ctx, s.ports.Organizations, job, organizations, s.now())
			return err
		})
	}
	return bodies, group.Wait()
}

// jobsView is the content of the list of jobs.
type jobsView struct {
	Base              string
	Now               time.Time
	Jobs              []indexing.JobBody
	Repository, State string
	Repositories      []core.RepositoryStatus
	States            []core.JobState
	// Next is the path of the next page, empty after the last one.
	Next string
}

// jobs serves the history of jobs, the newest first.
func (s *jobPages) jobs(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	v := jobsView{Base: s.base, Now: s.now(), Repository: q.Get("repository"), State: q.Get("state"), States: core.JobStates()}
	list, next, err := indexing.VisibleJobs(r, s.ports.Jobs, core.JobFilter{
		Repository: v.Repository, State: core.JobState(v.State), Limit: listed, Cursor: q.Get("cursor"),
	})
	if err != nil {
		return err
	}
	if v.Jobs, err = s.jobBodies(r.Context(), list, 1); err != nil {
		return err
	}
	if v.Repositories, err = indexing.VisibleRepositories(r, s.ports.Repositories); err != nil {
		return err
	}
	if next != "" {
		v.Next = s.link("jobs") + "?" + url.Values{"repository": {v.Repository}, "state": {v.State}, "cursor": {next}}.Encode()
	}
	s.render(w, r, http.StatusOK, "jobs", page{Title: "Jobs", Active: "jobs", Content: v})
	return nil
}

// jobView is the content of the page of a job.
type jobView struct {
	Base string
	Now  time.Time
	indexing.JobBody
	// Final is set once the job has ended.
	Final bool
	// MayIndex is set if the caller may queue the same run again.
	MayIndex bool
}

// readJob returns the job of a path as its page shows it.
func (s *jobPages) readJob(r *http.Request) (jobView, error) {
	id, err := api.PathParam(r, "id", "job id")
	if err != nil {
		return jobView{}, err
	}
	if err := indexing.CheckJob(r, s.ports.Jobs, id); err != nil {
		return jobView{}, jobError(err)
	}
	return s.currentJob(r, id)
}

func (s *jobPages) currentJob(r *http.Request, id string) (jobView, error) {
	job, err := s.ports.Jobs.Get(r.Context(), id)
	if err != nil {
		return jobView{}, jobError(err)
	}
	bodies, err := s.jobBodies(r.Context(), []core.Job{job}, indexing.ShownOrganizations)
	if err != nil {
		return jobView{}, err
	}
	return jobView{Base: s.base, Now: s.now(), JobBody: bodies[0], Final: job.State.Final(), MayIndex: api.RequireSystem(r) == nil}, nil
}

// jobError says of a job that does not exist what may have become of it.
func jobError(err error) error {
	if core.CodeOf(err) != core.CodeNotFound {
		return err
	}
	return &core.Error{
		Code: core.CodeNotFound, Message: "there is no such job", Err: err,
		Hint: "the newest 1000 jobs of the last 90 days are kept; this one may have been removed since",
	}
}

func (s *jobPages) job(w http.ResponseWriter, r *http.Request) error {
	v, err := s.readJob(r)
	if err != nil {
		return err
	}
	s.render(w, r, http.StatusOK, "job", page{Title: "Job " + short(v.ID), Active: "jobs", Content: v})
	return nil
}

func (s *jobPages) cancelJob(w http.ResponseWriter, r *http.Request) error {
	v, err := s.readJob(r)
	if err != nil {
		return err
	}
	if _, err := s.ports.Jobs.Cancel(r.Context(), v.ID); err != nil {
		return err
	}
	s.see(w, s.link("jobs", v.ID), "cancelled")
	return nil
}

// jobEvents streams the progress of a job as server-sent events: "job" with the part of its page, after each change, and "end" after
// the last one. It ends without "end" if the job cannot be read any more.
func (s *jobPages) jobEvents(w http.ResponseWriter, r *http.Request) error {
	v, err := s.readJob(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	if r.Method == http.MethodHead {
		return nil
	}
	api.BeginStreaming(r)
	ctx, cancel := context.WithCancel(r.Context())
	changed, watched := make(chan struct{}, 1), make(chan struct{})
	var panicked error // set before watched is closed
	go func() {
		defer close(watched)
		defer func() {
			if v := recover(); v != nil {
				panicked = api.PanicError(v)
			}
		}()
		// Its error ends the stream; the browser connects again and gets the error then.
		_ = s.ports.JobEvents.Watch(ctx, v.ID, func(core.JobChange) error {
			select {
			case changed <- struct{}{}:
			default:
			}
			return ctx.Err()
		})
	}()
	ended := false
	defer func() {
		cancel()
		<-watched
	}()
	for {
		part, err := s.fragment("job", "job-live", v)
		if err != nil || sendEvent(w, "job", part) != nil {
			api.NoteError(r, err)
			return nil
		}
		if v.Final || ended {
			_ = sendEvent(w, "end", nil)
			return nil
		}
		pause := time.NewTimer(eventInterval)
		select {
		case <-pause.C:
		case <-ctx.Done():
			return nil
		}
		keep := time.NewTimer(keepAlive)
		select {
		case <-changed:
		case <-watched:
			ended = true
			if panicked != nil {
				api.NoteError(r, panicked)
			}
		case <-keep.C:
		case <-ctx.Done():
			return nil
		case <-server.StoppingOf(ctx):
			return nil // the browser reconnects
		}
		keep.Stop()
		if v, err = s.currentJob(r, v.ID); err != nil {
			api.NoteError(r, err)
			return nil // the browser connects again, and the page then says what is wrong
		}
	}
}

// sendEvent writes one server-sent event.
func sendEvent(w http.ResponseWriter, name string, data []byte) error {
	var b bytes.Buffer
	b.WriteString("event: " + name + "\n")
	for line := range bytes.Lines(data) {
		b.WriteString("data: ")
		b.Write(bytes.TrimRight(line, "\r\n"))
		b.WriteByte('\n')
	}
	if len(data) == 0 {
		b.WriteString("data:\n")
	}
	b.WriteByte('\n')
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(eventTimeout))
	if _, err := w.Write(b.Bytes()); err != nil {
		return err
	}
	return control.Flush()
}
