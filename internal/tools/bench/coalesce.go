package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"tutti/internal/base/retry"
	"tutti/internal/core"
	"tutti/internal/tools/bench/results"
	"tutti/internal/tools/bench/standin"
	"tutti/internal/tools/bench/testbed"
	"tutti/internal/tools/testkit"
)

const (
	// triggeringClients is the number of concurrent clients that send triggers.
	triggeringClients = 16
	// caughtUp is how long nothing may be fetched before a backlog counts as completed; delays between two attempts at a record
	// are shorter.
	caughtUp = 3 * time.Second
	// catchUpTimeout bounds the time to complete a backlog.
	catchUpTimeout = 2 * time.Minute
	// backlogPollInterval is the interval of polling the backlog.
	backlogPollInterval = 20 * time.Millisecond
)

// coalesceRun is a backlog of triggers for few records.
type coalesceRun struct {
	corpus   *standin.Corpus
	upstream *testkit.SongServer
	sink     *standin.Sink
	tutti    *testbed.Tutti
	// marks identify the newest version of each analysis.
	marks []string
}

// coalesce queues many triggers for few records while the engine is down and counts all fetches.
func coalesce(ctx context.Context, b *testbed.Testbed) (_ *results.Report, err error) {
	r := &coalesceRun{corpus: standin.Generate(1, b.Sizes.Coalesced)}
	if r.upstream, err = r.corpus.Serve(); err != nil {
		return nil, err
	}
	defer r.upstream.Close()
	if r.sink, err = standin.NewSink(0, true); err != nil {
		return nil, err
	}
	defer r.sink.Close()
	if r.tutti, err = b.StartTutti(ctx, r.upstream.URL(), r.sink.URL(), b.NewName("coalesce")); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.tutti.Stop(ctx)) }()
	if _, _, err := r.tutti.Client.Backfill(ctx); err != nil {
		return nil, err
	}

	triggers := b.Sizes.Coalesced * b.Sizes.Repeats
	b.Say("coalesce: %d triggers while the engine is down", triggers)
	before := r.upstream.Requests(testkit.RouteRecord)
	r.sink.SwitchOff(true)
	took, err := r.queue(ctx, b.Sizes.Repeats)
	if err != nil {
		return nil, err
	}
	whileDown := r.upstream.Requests(testkit.RouteRecord) - before
	r.sink.SwitchOff(false)
	back, err := r.catchUp(ctx)
	if err != nil {
		return nil, err
	}
	fetches := r.upstream.Requests(testkit.RouteRecord) - before
	report := &results.Report{What: fmt.Sprintf("%s triggers for %d records by %d clients while the engine is switched off, until it is back and "+
		"holds the newest version of each", results.Number(float64(triggers)), b.Sizes.Coalesced, triggeringClients)}
	report.Add(results.Figure{Name: "fetches", Values: []float64{float64(fetches)}, Target: results.AtMost(3 * float64(b.Sizes.Coalesced))})
	report.Add(results.Figure{Name: "fetches while the engine was down", Values: []float64{float64(whileDown)}})
	report.Add(results.Figure{Name: "triggers accepted per second", Values: []float64{results.Rate(triggers, took)}})
	report.Add(results.Figure{Name: "all in the index after the engine's return, ms", Values: []float64{back.Seconds() * 1e3}})
	return report, nil
}

// queue sends the triggers, for each record in turn. The records change once more before their last trigger.
func (r *coalesceRun) queue(ctx context.Context, repeats int) (time.Duration, error) {
	began := time.Now()
	for i := range repeats {
		if i == repeats-1 {
			if err := r.changeAll(); err != nil {
				return 0, err
			}
		}
		clients, clientCtx := errgroup.WithContext(ctx)
		clients.SetLimit(triggeringClients)
		for _, a := range r.corpus.Analyses {
			clients.Go(func() error {
				_, err := r.tutti.Client.Trigger(clientCtx, testbed.RecordPath(a))
				return err
			})
		}
		if err := clients.Wait(); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

func (r *coalesceRun) changeAll() error {
	for _, a := range r.corpus.Analyses {
		mark, err := change(r.upstream, a)
		if err != nil {
			return err
		}
		r.marks = append(r.marks, mark)
	}
	return nil
}

// catchUp waits until the sink holds the newest version of each record and nothing is fetched any more. It returns the time until the
// newest versions are there.
func (r *coalesceRun) catchUp(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	var whole time.Duration
	fetches, since := r.upstream.Requests(testkit.RouteRecord), began
	for {
		if whole == 0 && r.newest() {
			whole = time.Since(began)
		}
		if now := r.upstream.Requests(testkit.RouteRecord); now != fetches {
			fetches, since = now, time.Now()
		}
		if whole > 0 && time.Since(since) > caughtUp {
			return whole, nil
		}
		if time.Since(began) > catchUpTimeout {
			return 0, core.NewError(core.CodeInternal, "the backlog was not completed")
		}
		if err := retry.Sleep(ctx, backlogPollInterval); err != nil {
			return 0, err
		}
	}
}

func (r *coalesceRun) newest() bool {
	for i, a := range r.corpus.Analyses {
		if !changedTo(r.sink.Document(a.ID), r.marks[i]) {
			return false
		}
	}
	return true
}
