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

	"tutti/internal/core"
	"tutti/internal/testkit"
)

const (
	// notifyEvery is the time between two bursts of notifications.
	notifyEvery = 10 * time.Millisecond
	// notifySampleEvery is how many notifications go by until one is followed into the index.
	notifySampleEvery = 40
	// notifyLookedAtEvery is how often the index is asked for one that is followed.
	notifyLookedAtEvery = 5 * time.Millisecond
	// notifyClients is how many posts may be under way.
	notifyClients = 64
	// notifyLate is when one that does not come ends the benchmark.
	notifyLate = 30 * time.Second
)

// notifyRun sends notifications at a steady rate and follows some of them into the index.
type notifyRun struct {
	tutti    *tutti
	upstream *testkit.SongServer
	corpus   *corpus
	// perPost is how many events a post holds.
	perPost int
	// rate is how many notifications are sent each second.
	rate int
	// warm is how long notifications are sent before any is followed or counts.
	warm time.Duration

	accepted atomic.Int64
	late     atomic.Int64 // bursts that began more than 100 ms after their time
	mu       sync.Mutex
	behind   []float64 // milliseconds from when a notification was due to be sent until the index showed its change
}

// notifyPost is the body of a post; it counts once the warm-up is over.
type notifyPost struct {
	body   []byte
	events int
	counts bool
}

// notify measures a steady stream of notifications, one for each of many records in turn.
func (b *bench) notify(ctx context.Context) (*Report, error) {
	report := &Report{What: fmt.Sprintf("%d notifications a second for %s by webhook, whatever becomes of those before, for %s records in "+
		"turn; milliseconds from when one was due to be sent until a get by id shows its change (one in %d is followed)",
		b.Sizes.NotifyRate, b.Sizes.NotifyFor, number(float64(b.Sizes.Notified)), notifySampleEvery)}
	for _, on := range []struct{ what, url string }{{"Elasticsearch", b.ElasticsearchURL}, {"embedded index", ""}} {
		if on.what == "Elasticsearch" && on.url == "" {
			report.note("%s is left out: it needs --elasticsearch", on.what)
			continue
		}
		for _, perPost := range []int{1, 20} {
			what := fmt.Sprintf("%s, %d a post", on.what, perPost)
			b.say("notify: %s", what)
			run, err := b.notifications(ctx, on.url, perPost)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", what, err)
			}
			report.add(Figure{
				Name:   what + ": accepted per second",
				Values: []float64{float64(run.accepted.Load()) / b.Sizes.NotifyFor.Seconds()}, Target: atLeast(0.98 * float64(b.Sizes.NotifyRate)),
			})
			addLatencies(report, what+": behind", run.behind, [3]*Target{nil, atMost(1000), nil})
			if n := run.late.Load(); n > 0 {
				report.note("%s: %d bursts were sent more than 100 ms late", what, n)
			}
		}
	}
	return report, nil
}

func (b *bench) notifications(ctx context.Context, engineURL string, perPost int) (_ *notifyRun, err error) {
	run := &notifyRun{corpus: generate(4, b.Sizes.Notified), perPost: perPost, rate: b.Sizes.NotifyRate, warm: b.Sizes.NotifyFor / 10}
	if run.upstream, err = run.corpus.serve(); err != nil {
		return nil, err
	}
	defer run.upstream.Close()
	alias := b.newName("notify")
	if run.tutti, err = b.startTutti(ctx, run.upstream.URL(), engineURL, alias); err != nil {
		return nil, err
	}
	defer func() {
		if engineURL != "" {
			err = errors.Join(err, b.dropAlias(context.WithoutCancel(ctx), alias))
		}
	}()
	defer func() { err = errors.Join(err, run.tutti.stop(ctx)) }()
	if _, _, err := run.tutti.client.backfill(ctx); err != nil {
		return nil, err
	}
	return run, run.send(ctx, run.warm+b.Sizes.NotifyFor)
}

// send sends bursts on a clock of their own and waits for what is followed.
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

// drive makes the bursts, each at its time.
func (r *notifyRun) drive(ctx context.Context, group *errgroup.Group, duration time.Duration, posts chan<- notifyPost) error {
	burst := max(1, int(time.Duration(r.rate)*notifyEvery/time.Second))
	began := time.Now()
	next := 0
	for due := began; due.Sub(began) < duration; due = due.Add(notifyEvery) {
		if err := pause(ctx, time.Until(due)); err != nil {
			return err
		}
		if time.Since(due) > 100*time.Millisecond {
			r.late.Add(1)
		}
		warm := due.Sub(began) >= r.warm
		events := make([]json.RawMessage, 0, burst)
		for range burst {
			a := r.corpus.analyses[next%len(r.corpus.analyses)]
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

// post sends what is due. What is refused ends the benchmark.
func (r *notifyRun) post(ctx context.Context, posts <-chan notifyPost) error {
	for p := range posts {
		if _, err := r.tutti.client.call(ctx, http.MethodPost, "/notifications/"+repositoryCode, "application/json", p.body); err != nil {
			return err
		}
		if p.counts {
			r.accepted.Add(int64(p.events))
		}
	}
	return nil
}

// follow waits until the index shows a change.
func (r *notifyRun) follow(ctx context.Context, a testkit.Analysis, mark string, due time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, notifyLate)
	defer cancel()
	for {
		stored, found, err := r.tutti.app.Index().Get(ctx, r.tutti.alias, a.ID)
		if err != nil {
			return err
		}
		if found && changedTo(stored.Source, mark) {
			r.mu.Lock()
			r.behind = append(r.behind, time.Since(due).Seconds()*1e3)
			r.mu.Unlock()
			return nil
		}
		if pause(ctx, notifyLookedAtEvery) != nil {
			return core.NewError(core.CodeInternal, "a change that was notified did not come to the index")
		}
	}
}
