package client_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/cmd/tutti/internal/client"
	"tutti/http/api"
	"tutti/http/indexing"
	"tutti/http/server"
	"tutti/internal/core"
	"tutti/internal/core/idlist"
	"tutti/internal/tools/fakes"
	"tutti/internal/tools/testkit"
)

// tutti is the ports of the real handler, with the changes of its only job.
type tutti struct {
	*fakes.Ports
	changes []core.JobChange
	more    chan struct{}
	// lostPage is the page of ids that cannot be read.
	lostPage atomic.Int64
}

func newTutti() *tutti {
	f := &tutti{Ports: fakes.New(), more: make(chan struct{})}
	f.lostPage.Store(-1)
	f.WatchFn = f.watch
	f.ListFn = func(filter core.JobFilter) ([]core.Job, string, error) {
		f.Note("jobs %s %s %d %s", filter.Repository, filter.State, filter.Limit, filter.Cursor)
		return []core.Job{{ID: "job-1"}}, "next", nil
	}
	list, retry := f.Letters.ListFn, f.Letters.RetryFn
	f.Letters.ListFn = func(ctx context.Context, filter core.DeadLetterFilter) ([]core.DeadLetter, string, error) {
		f.Note("letters %s %s", filter.Repository, filter.Reason)
		return list(ctx, filter)
	}
	f.Letters.RetryFn = func(id, requestID string) (core.DeadLetter, error) {
		if id != "d1" {
			return core.DeadLetter{}, &core.Error{Code: core.CodeConflict, Message: "this letter cannot be retried", Hint: "discard it"}
		}
		return retry(id, requestID)
	}
	f.IDPageFn = func(_, organization string, page int) ([]idlist.ID, error) {
		if f.lostPage.Load() == int64(page) {
			return nil, core.NewError(core.CodeUnavailable, "the queue does not answer")
		}
		return []idlist.ID{{ID: fmt.Sprint(organization, page), Outcome: idlist.Indexed}}, nil
	}
	return f
}

// change adds a change of the job or of its only organization.
func (f *tutti) change(c core.JobChange) {
	f.Lock()
	defer f.Unlock()
	if c.Job != nil {
		f.Jobs = []core.Job{*c.Job}
	} else {
		f.Runs = []core.OrganizationRun{*c.Run}
	}
	c.Revision = uint64(len(f.changes) + 1)
	f.changes = append(f.changes, c)
	close(f.more)
	f.more = make(chan struct{})
}

func (f *tutti) watch(ctx context.Context, id string, each func(core.JobChange) error) error {
	if _, err := f.GetFn(id); err != nil {
		return err
	}
	for seen, told := 0, false; ; told = true {
		f.Lock()
		news, more := f.changes[seen:], f.more
		f.Unlock()
		for _, c := range news {
			if err := each(c); err != nil {
				return err
			}
		}
		seen += len(news)
		if !told {
			if err := each(core.JobChange{Revision: uint64(seen)}); err != nil {
				return err
			}
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// start serves f with the real handler on an address, a free one when it is empty, until the test ends or stop is called.
func (f *tutti) start(t *testing.T, address string) (running *server.Server, stop func()) {
	t.Helper()
	handler, err := api.New(api.Config{BasePath: "/base"}, indexing.New(f.Indexing()))
	if err != nil {
		t.Fatal(err)
	}
	running = server.New(handler, server.Config{})
	if address == "" {
		address = "127.0.0.1:0"
	}
	if err := running.Start(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), testkit.HangLimit)
		defer cancel()
		if err := running.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return running, stop
}

func urlOf(addr net.Addr) string { return "http://" + addr.String() + "/base" }

// TestWatchJobOfTheHandler: a watch on the real handler continues after a restart of the server.
func TestWatchJobOfTheHandler(t *testing.T) {
	t.Parallel()
	f := newTutti()
	started := time.Now()
	running := core.Job{ID: "job-1", Scope: core.ScopeRepository, Repository: "a", State: core.JobRunning, StartedAt: &started}
	f.change(core.JobChange{Job: &running})
	f.change(core.JobChange{Run: &core.OrganizationRun{Organization: "S1", State: core.JobRunning, Totals: core.Totals{Expected: 9, Fetched: 1}}})
	server, stop := f.start(t, "")
	c := newClient(t, client.Config{Server: urlOf(server.Addr())})

	restarted := make(chan struct{})
	var got []string
	job, err := c.WatchJob(t.Context(), "job-1", func(e client.Event) error {
		if e.Lost != nil {
			return nil // the number depends on the speed of the other server
		}
		got = append(got, describe(e))
		if len(got) == 2 { // the organization and the job in their initial state
			go func() {
				defer close(restarted)
				stop()
				ended := running
				ended.State, ended.EndedAt, ended.Totals = core.JobSucceeded, &started, core.Totals{Expected: 9, Fetched: 9}
				f.change(core.JobChange{Run: &core.OrganizationRun{Organization: "S1", State: core.JobSucceeded, Totals: ended.Totals}})
				f.change(core.JobChange{Job: &ended})
				f.start(t, server.Addr().String())
			}()
		}
		return nil
	})
	<-restarted
	if err != nil || job.State != core.JobSucceeded || job.Totals.Fetched != 9 || len(job.Organizations) != 1 {
		t.Fatalf("%+v, %v", job, err)
	}
	want := []string{"S1 running 1", "job-1 running 1", "S1 succeeded 9", "job-1 succeeded 9"}
	if diff := cmp.Diff(want, got[:min(len(got), 4)]); diff != "" {
		t.Error(diff)
	}
	if _, err := c.WatchJob(t.Context(), "job-2", func(client.Event) error { return nil }); core.CodeOf(err) != core.CodeNotFound {
		t.Errorf("error %v, want that job not found", err)
	}
}

// TestCallsOfTheHandler: client and real handler understand each other.
func TestCallsOfTheHandler(t *testing.T) {
	t.Parallel()
	f := newTutti()
	f.change(core.JobChange{Job: &core.Job{ID: "job-1", State: core.JobQueued}})
	f.DeadLetters = []core.DeadLetter{
		{ID: "d1", Repository: "a", RecordID: "r", Reason: core.ReasonRejected, Document: []byte(`{"a":1}`), Size: 7},
		{ID: "d2", Repository: "a", Reason: core.ReasonRejected, Document: []byte("text"), Size: 4},
		{ID: "d3", Repository: "a", Reason: core.ReasonRejected, Document: []byte{0, 1}, Size: 2},
	}
	server, _ := f.start(t, "")
	ctx, c := t.Context(), newClient(t, client.Config{Server: urlOf(server.Addr())})

	accepted, err := c.Index(ctx, client.RunOptions{Force: true}, "a")
	if err != nil || accepted.JobID != "job-1" || accepted.IndexName != "analyses" || accepted.RequestID == "" {
		t.Errorf("%+v, %v", accepted, err)
	}
	if _, err = c.Index(ctx, client.RunOptions{Rebuild: true}, "a"); err != nil {
		t.Error(err)
	}
	if _, err := c.Index(ctx, client.RunOptions{Difference: true}, "a", "S/1"); err != nil {
		t.Error(err)
	}
	if _, err := c.Index(ctx, client.RunOptions{}, "a", "S/1", "ä ?"); err != nil {
		t.Error(err)
	}
	if _, err := c.RemoveRecord(ctx, "a", "S/1", "..x"); err != nil {
		t.Error(err)
	}
	page, err := c.Jobs(ctx, core.JobFilter{Repository: "a", State: core.JobFailed, Limit: 3, Cursor: "n"})
	if err != nil || len(page.Jobs) != 1 || page.NextCursor != "next" {
		t.Errorf("%+v, %v", page, err)
	}
	if job, err := c.CancelJob(ctx, "job-1"); err != nil || job.State != core.JobQueued {
		t.Errorf("%+v, %v", job, err)
	}
	f.letterCalls(t, c)
	want := []string{
		"run repository a  {Force:true Rebuild:false Difference:false}", "run repository a  {Force:false Rebuild:true Difference:false}", "run organization a S/1 {Force:false Rebuild:false Difference:true}", "index a S/1 ä ?", "remove a S/1 ..x", "jobs a failed 3 n",
		"cancel job-1", "letters a rejected", "letters  ", "retry d1", "retry-all a S1 rejected", "discard d1", "discard d9",
	}
	if diff := cmp.Diff(want, f.Calls); diff != "" {
		t.Error(diff)
	}
}

func (f *tutti) letterCalls(t *testing.T, c *client.Client) {
	t.Helper()
	ctx := t.Context()
	list, err := c.DeadLetters(ctx, core.DeadLetterFilter{Repository: "a", Reason: core.ReasonRejected})
	if err != nil || len(list.DeadLetters) != 3 || list.DeadLetters[0].Document != nil {
		t.Errorf("%+v, %v", list, err)
	}
	for id, want := range map[string]string{"d1": `{"a":1} "" ""`, "d2": ` "text" ""`, "d3": ` "" "\x00\x01"`} {
		l, err := c.DeadLetter(ctx, id)
		if got := fmt.Sprintf("%s %q %q", l.Document, l.DocumentText, l.DocumentBase64); err != nil || got != want {
			t.Errorf("%s: %s, want %s, %v", id, got, want, err)
		}
	}
	var out bytes.Buffer
	if err := c.ExportDeadLetters(ctx, core.DeadLetterFilter{}, &out); err != nil || strings.Count(out.String(), "\n") != 3 {
		t.Errorf("%v: %s", err, &out)
	}
	retried, err := c.Retry(ctx, "d1")
	if err != nil || !retried.Successful || retried.RecordID != "r" {
		t.Errorf("%+v, %v", retried, err)
	}
	_, err = c.Retry(ctx, "d2")
	wantError(t, err, core.CodeConflict, "this letter cannot be retried", "discard it")
	all, err := c.RetryAll(ctx, core.DeadLetterFilter{Repository: "a", Organization: "S1", Reason: core.ReasonRejected})
	if err != nil || !all.Successful || all.JobID != "job-2" {
		t.Errorf("%+v, %v", all, err)
	}
	if err := c.Discard(ctx, "d1"); err != nil {
		t.Error(err)
	}
	wantError(t, c.Discard(ctx, "d9"), core.CodeNotFound, "no such dead letter", "")
}
