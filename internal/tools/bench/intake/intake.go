package intake

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/base/retry"
	"tutti/internal/base/setting"
	"tutti/internal/core"
	"tutti/internal/tools/bench/direct"
	"tutti/internal/tools/bench/results"
	"tutti/internal/tools/bench/standin"
	"tutti/internal/tools/bench/testbed"
	"tutti/internal/tools/testkit/dataset"
)

const (
	// outboxMetric is the number of changes of the built-in repository that are not in the queue yet.
	outboxMetric = "tutti_outbox_pending_events "
	// listTimeout bounds the time of a list of ids.
	listTimeout = 2 * time.Minute
)

// intakeWay is a way in which changes reach tutti.
type intakeWay struct {
	name string
	// local: it is the built-in repository that changes.
	local bool
	// run takes changes in and returns their number and the time that they took. What it does before it calls begin is not measured.
	run func(ctx context.Context, t *intake, begin func()) (changes int, took time.Duration, err error)
}

func intakeWays() []intakeWay {
	return []intakeWay{
		{name: "triggers, 1 connection", run: requests(1, 1, singleTrigger)},
		{name: "triggers, 64 connections", run: requests(64, 1, singleTrigger)},
		{name: "notifications, 1 a post, 64 connections", run: requests(64, 1, notifications)},
		{name: "notifications, 20 a post, 8 connections", run: requests(8, 20, notifications)},
		{name: "notifications, 1000 a post, 2 connections", run: requests(2, 1000, notifications)},
		{name: "a list of ids, until all are indexed", run: listOfIDs},
		{name: "publications of the built-in repository, until all are in the queue", local: true, run: outbox},
	}
}

// intake is a server that takes changes in.
type intake struct {
	*testbed.Testbed
	client *direct.Client
	load   direct.Load
	// analyses are those of the repository, in turn the ones that change.
	analyses []dataset.Analysis
	next     atomic.Int64
}

// intakeRun is what a run has taken in: changes a second, and flushes of the disk for each change.
type intakeRun struct{ perSecond, flushes float64 }

// Rates measures how many changes tutti takes in durably, each way alone, and how often the disk is flushed for one.
func Rates(ctx context.Context, b *testbed.Testbed) (*results.Report, error) {
	report := &results.Report{What: fmt.Sprintf("changes of distinct records that tutti accepts durably, each way in alone, with a repository and an engine that "+
		"respond at once, for %s a run with a fresh process; flushes of the disk are those of all processes", b.Sizes.LoadFor)}
	upstream, err := b.StartUpstream(ctx, 1, b.Sizes.Records)
	if err != nil {
		return nil, err
	}
	defer upstream.Stop()
	sink, err := b.StartSink(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer sink.Stop()
	if _, err := flushes(b.Dir); err != nil {
		report.Note("the flushes of the disk are not known: %v", err)
	}
	analyses := standin.Generate(1, b.Sizes.Records).Analyses
	for _, way := range intakeWays() {
		arm := func(server []string) func() (intakeRun, error) {
			return func() (intakeRun, error) {
				b.Say("intake: %s: %s", way.name, strings.Join(server, " "))
				return takeIn(ctx, b, server, way, []string{upstream.URL, sink.URL}, analyses)
			}
		}
		if err := measureIntake(ctx, b, report, way.name, arm); err != nil {
			return nil, fmt.Errorf("%s: %w", way.name, err)
		}
	}
	return report, nil
}

// measureIntake adds the figures of a way, and where there is another server their ratio to its.
func measureIntake(ctx context.Context, b *testbed.Testbed, report *results.Report, name string, arm func(server []string) func() (intakeRun, error)) error {
	var others, runs []intakeRun
	var err error
	if len(b.Against) > 0 {
		if others, runs, err = results.Alternate(b.Sizes.Pairs, arm(b.Against), arm(b.Server)); err != nil && ctx.Err() == nil {
			report.Note("%s: not compared: %v", name, err) // another release may not do what this one does
			err = nil
		}
	}
	for err == nil && len(runs) < b.Sizes.Pairs {
		var run intakeRun
		run, err = arm(b.Server)()
		runs = append(runs, run)
	}
	if err != nil {
		return err
	}
	perSecond := func(r intakeRun) float64 { return r.perSecond }
	flushed := func(r intakeRun) float64 { return r.flushes }
	report.Add(
		results.Figure{Name: name + ": a second", Values: results.Select(runs, perSecond)},
		results.Figure{Name: name + ": flushes a change", Values: results.Select(runs, flushed)},
	)
	if len(others) > 0 {
		report.Add(
			results.Ratio(name+": a second / the other server's", nil, results.Select(others, perSecond), results.Select(runs, perSecond)),
			results.Ratio(name+": flushes a change / the other server's", nil, results.Select(others, flushed), results.Select(runs, flushed)),
		)
	}
	return nil
}

// takeIn is one run of a way on a fresh server, on a repository and an engine.
func takeIn(ctx context.Context, b *testbed.Testbed, server []string, way intakeWay, urls []string, analyses []dataset.Analysis) (run intakeRun, err error) {
	dir, err := b.NewFolder()
	if err != nil {
		return run, err
	}
	env := testbed.Settings(dir, urls[0], urls[1], b.NewName("intake"))
	if way.local {
		env = testbed.Variables(map[string]string{"server.listen": "127.0.0.1:0", "dataDir": dir, "index.url": urls[1]})
	}
	process, err := b.Start(ctx, testbed.ChildSpec{Address: testbed.LoggedAddress, Signalled: true, Command: server, Env: append(env, setting.Variable("log.format")+"=json")})
	if err != nil {
		return run, err
	}
	defer process.Stop()
	t := &intake{Testbed: b, client: direct.NewClient(process.URL), analyses: analyses}
	defer t.client.Close()
	if t.load, err = direct.NewLoad(process.URL); err != nil {
		return run, err
	}
	engine := direct.NewClient(urls[1])
	defer engine.Close()
	indexedBefore, err := testbed.Received(ctx, engine)
	if err != nil {
		return run, err
	}
	var before float64
	changes, took, err := way.run(ctx, t, func() { before, _ = flushes(dir) })
	if err != nil {
		return run, err
	}
	after, _ := flushes(dir)
	if err := awaitIndexed(ctx, engine, indexedBefore); err != nil {
		return run, fmt.Errorf("waiting until the server has indexed one of the changes: %w", err)
	}
	return intakeRun{perSecond: results.Rate(changes, took), flushes: (after - before) / float64(changes)}, nil
}

// awaitIndexed waits until an engine has received more documents than before: a server that indexes nothing takes changes in with less work.
func awaitIndexed(ctx context.Context, engine *direct.Client, before int) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	for {
		indexed, err := testbed.Received(ctx, engine)
		if err != nil || indexed > before {
			return err
		}
		if err := retry.Sleep(ctx, testbed.DocumentPollInterval); err != nil {
			return err
		}
	}
}

// requests returns the run of a way whose requests have a number of changes each.
func requests(connections, changes int, request func(t *intake, changed []dataset.Analysis) []byte) func(context.Context, *intake, func()) (int, time.Duration, error) {
	return func(ctx context.Context, t *intake, begin func()) (int, time.Duration, error) {
		next := func(int, int) []byte { return request(t, t.take(changes)) }
		if _, err := t.load.RunConnections(ctx, connections, t.Sizes.LoadFor/5, next); err != nil {
			return 0, 0, err
		}
		begin()
		began := time.Now()
		got, err := t.load.RunConnections(ctx, connections, t.Sizes.LoadFor, next)
		return len(got.Ms) * changes, time.Since(began), err
	}
}

// take returns the next n analyses.
func (t *intake) take(n int) []dataset.Analysis {
	end := int(t.next.Add(int64(n)))
	taken := make([]dataset.Analysis, n)
	for i := range taken {
		taken[i] = t.analyses[(end-n+i)%len(t.analyses)]
	}
	return taken
}

func singleTrigger(t *intake, changed []dataset.Analysis) []byte {
	return t.load.Request(http.MethodPost, testbed.RecordPath(changed[0]), []byte{})
}

func notifications(t *intake, changed []dataset.Analysis) []byte {
	events := make([]json.RawMessage, len(changed))
	for i, a := range changed {
		events[i] = fmt.Appendf(nil, `{"analysisId":%q,"studyId":%q,"state":"PUBLISHED","action":"PUBLISH"}`, a.ID, a.Study)
	}
	body, _ := json.Marshal(events) // texts of JSON
	return t.load.Request(http.MethodPost, "/notifications/"+direct.RepositoryCode, body)
}

// listOfIDs triggers a list of half of the records, and before it one of a tenth.
func listOfIDs(ctx context.Context, t *intake, begin func()) (n int, took time.Duration, err error) {
	for _, n = range []int{len(t.analyses) / 10, len(t.analyses) / 2} {
		begin()
		var list bytes.Buffer
		listed := t.take(n)
		for _, a := range listed {
			list.WriteString(a.ID + "\n")
		}
		began := time.Now()
		path := "/index/repository/" + direct.RepositoryCode + "/organization/" + listed[0].Study + "/ids"
		answer, err := t.client.Call(ctx, http.MethodPost, path, "text/plain", list.Bytes())
		if err != nil {
			return 0, 0, err
		}
		waiting, stop := context.WithTimeout(ctx, listTimeout)
		job, err := t.client.Await(waiting, gjson.GetBytes(answer, "jobId").String())
		stop()
		if err != nil {
			return 0, 0, err
		}
		took = job.Get("endedAt").Time().Sub(began)
	}
	return n, took, nil
}

// outbox publishes a tenth as many analyses of the built-in repository as there are others, over many connections.
func outbox(ctx context.Context, t *intake, begin func()) (n int, took time.Duration, err error) {
	if err := registerLocal(ctx, t.client); err != nil {
		return 0, 0, err
	}
	s := &submitter{tutti: &testbed.Tutti{Client: t.client}}
	ids := make([]string, max(1, len(t.analyses)/10))
	if err := concurrently(ctx, len(ids), func(ctx context.Context, i int) (err error) {
		ids[i], err = s.submit(ctx)
		return err
	}); err != nil {
		return 0, 0, err
	}
	begin()
	began := time.Now()
	if err := concurrently(ctx, len(ids), func(ctx context.Context, i int) error { return s.publish(ctx, ids[i]) }); err != nil {
		return 0, 0, err
	}
	err = t.awaitOutbox(ctx)
	return len(ids), time.Since(began), err
}

// awaitOutbox waits until all changes are in the queue.
func (t *intake) awaitOutbox(ctx context.Context) error {
	for {
		metrics, err := t.client.Call(ctx, http.MethodGet, "/metrics", "", nil)
		if err != nil {
			return err
		}
		_, rest, _ := strings.Cut(string(metrics), "\n"+outboxMetric)
		value, _, _ := strings.Cut(rest, "\n")
		if n, err := strconv.ParseFloat(value, 64); err != nil {
			return core.WrapError(core.CodeInternal, "reading "+outboxMetric, err)
		} else if n == 0 {
			return nil
		}
		if err := retry.Sleep(ctx, testbed.DocumentPollInterval); err != nil {
			return err
		}
	}
}
