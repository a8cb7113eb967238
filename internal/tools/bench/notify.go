package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"tutti/internal/base/retry"
	"tutti/internal/core"
	"tutti/internal/tools/bench/direct"
	"tutti/internal/tools/bench/results"
	"tutti/internal/tools/bench/standin"
	"tutti/internal/tools/bench/testbed"
	"tutti/internal/tools/testkit"
	"tutti/internal/tools/testkit/dataset"
)

const (
	// notifyEvery is the time between two bursts of notifications.
	notifyEvery = 10 * time.Millisecond
	// notifySampleEvery is the number of notifications of which one is followed into the index.
	notifySampleEvery = 40
	// notifyPollInterval is the interval of polling the index for a followed one.
	notifyPollInterval = 5 * time.Millisecond
	// notifyClients bounds the posts in flight.
	notifyClients = 64
	// notifyTimeout bounds the time until a followed one is indexed.
	notifyTimeout = 30 * time.Second
)

// notifyRun sends notifications at a steady rate and follows some of them into the index.
type notifyRun struct {
	tutti    *testbed.Tutti
	upstream *testkit.SongServer
	corpus   *standin.Corpus
	// perPost is the number of events of a post.
	perPost int
	// rate is the number of notifications per second.
	rate int
	// warm is the duration of the warm-up.
	warm time.Duration

	accepted atomic.Int64
	late     atomic.Int64 // bursts that started more than 100 ms after their time
	mu       sync.Mutex
	behind   []float64 // milliseconds from when a notification was due to be sent until the index showed its change
}

// notifyPost is the body of a post; counts is set after the warm-up.
type notifyPost struct {
	body   []byte
	events int
	counts bool
}

// notify measures a steady stream of notifications, one for each of many records in turn.
func notify(ctx context.Context, b *testbed.Testbed) (*results.Report, error) {
	report := &results.Report{What: fmt.Sprintf("%d notifications a second for %s by webhook, independent of earlier ones, for %s records in "+
		"turn; milliseconds from when one was due to be sent until a get by id shows its change (one in %d is followed)",
		b.Sizes.NotifyRate, b.Sizes.NotifyFor, results.Number(float64(b.Sizes.Notified)), notifySampleEvery)}
	for _, on := range []struct{ what, url string }{{"Elasticsearch", b.ElasticsearchURL}, {"embedded index", ""}} {
		if on.what == "Elasticsearch" && on.url == "" {
			report.Note("%s is skipped: it needs --elasticsearch", on.what)
			continue
		}
		for _, perPost := range []int{1, 20} {
			what := fmt.Sprintf("%s, %d a post", on.what, perPost)
			b.Say("notify: %s", what)
			run, err := runNotifications(ctx, b, on.url, perPost)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", what, err)
			}
			report.Add(results.Figure{
				Name:   what + ": accepted per second",
				Values: []float64{float64(run.accepted.Load()) / b.Sizes.NotifyFor.Seconds()}, Target: results.AtLeast(0.98 * float64(b.Sizes.NotifyRate)),
			})
			results.AddLatencies(report, what+": behind", run.behind, [3]*results.Target{nil, results.AtMost(1000), nil})
			if n := run.late.Load(); n > 0 {
				report.Note("%s: %d bursts were sent more than 100 ms late", what, n)
			}
		}
	}
	return report, nil
}

func runNotifications(ctx context.Context, b *testbed.Testbed, engineURL string, perPost int) (_ *notifyRun, err error) {
	run := &notifyRun{corpus: standin.Generate(4, b.Sizes.Notified), perPost: perPost, rate: b.Sizes.NotifyRate, warm: b.Sizes.NotifyFor / 10}
	if run.upstream, err = run.corpus.Serve(); err != nil {
		return nil, err
	}
	defer run.upstream.Close()
	alias := b.NewName("notify")
	if run.tutti, err = b.StartTutti(ctx, run.upstream.URL(), engineURL, alias); err != nil {
		return nil, err
	}
	defer func() {
		if engineURL != "" {
			err = errors.Join(err, dropAlias(context.WithoutCancel(ctx), b, alias))
		}
	}()
	defer func() { err = errors.Join(err, run.tutti.Stop(ctx)) }()
	if _, _, err := run.tutti.Client.Backfill(ctx); err != nil {
		return nil, err
	}
	return run, run.send(ctx, run.warm+b.Sizes.NotifyFor)
}

// send sends bursts at fixed times and waits for the followed notifications.
func (r *notifyRun) send(ctx context.Context, duration time.Duration) error {
	group, ctx := errgroup.WithContext(ctx)
	posts := make(chan notifyPost, 100*notifyClients)
	for range notifyClients {
		group.Go(func() error { return r.post(ctx, posts) })
	}
	group.Go(func() error {
		defer close(posts)
		return r.drive(ctx, group, duration, posts)
	})
	return group.Wait()
}

// drive schedules the bursts.
func (r *notifyRun) drive(ctx context.Context, group *errgroup.Group, duration time.Duration, posts chan<- notifyPost) error {
	burst := max(1, int(time.Duration(r.rate)*notifyEvery/time.Second))
	began := time.Now()
	next := 0
	for due := began; due.Sub(began) < duration; due = due.Add(notifyEvery) {
		if err := retry.Sleep(ctx, time.Until(due)); err != nil {
			return err
		}
		if time.Since(due) > 100*time.Millisecond {
			r.late.Add(1)
		}
		warm := due.Sub(began) >= r.warm
		events := make([]json.RawMessage, 0, burst)
		for range burst {
			a := r.corpus.Analyses[next%len(r.corpus.Analyses)]
			if next++; warm && next%notifySampleEvery == 0 {
				mark, err := change(r.upstream, a)
				if err != nil {
					return err
				}
				group.Go(func() error { return r.follow(ctx, a, mark, due) })
			}
			events = append(events, fmt.Appendf(nil, `{"analysisId":%q,"studyId":%q,"state":"PUBLISHED","action":"PUBLISH"}`, a.ID, a.Study))
		}
		for len(events) > 0 {
			n := min(r.perPost, len(events))
			body, err := json.Marshal(events[:n])
			if err != nil {
				return err
			}
			events = events[n:]
			select {
			case posts <- notifyPost{body, n, warm}:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// post sends due notifications. A rejected one ends the benchmark.
func (r *notifyRun) post(ctx context.Context, posts <-chan notifyPost) error {
	for p := range posts {
		if _, err := r.tutti.Client.Call(ctx, http.MethodPost, "/notifications/"+direct.RepositoryCode, "application/json", p.body); err != nil {
			return err
		}
		if p.counts {
			r.accepted.Add(int64(p.events))
		}
	}
	return nil
}

// follow waits until the index shows a change.
func (r *notifyRun) follow(ctx context.Context, a dataset.Analysis, mark string, due time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	for {
		stored, found, err := r.tutti.App.Index().Get(ctx, r.tutti.Alias, a.ID)
		if err != nil {
			return err
		}
		if found && changedTo(stored.Source, mark) {
			r.mu.Lock()
			r.behind = append(r.behind, time.Since(due).Seconds()*1e3)
			r.mu.Unlock()
			return nil
		}
		if retry.Sleep(ctx, notifyPollInterval) != nil {
			return core.NewError(core.CodeInternal, "a notified change was not indexed")
		}
	}
}
