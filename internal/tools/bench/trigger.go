package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"tutti/internal/base/retry"
	"tutti/internal/core"
	"tutti/internal/tools/bench/direct"
	"tutti/internal/tools/bench/results"
	"tutti/internal/tools/bench/standin"
	"tutti/internal/tools/bench/testbed"
	"tutti/internal/tools/testkit"
	"tutti/internal/tools/testkit/dataset"
)

// changedField is the member that a change of an analysis sets.
const changedField = "updatedAt"

// trigger measures single triggers on an idle system: the time until they are accepted, and until the changed record is indexed.
func trigger(ctx context.Context, b *testbed.Testbed) (*results.Report, error) {
	report := &results.Report{What: fmt.Sprintf("%d records that changed at the repository, triggered one after the other on an idle system: "+
		"milliseconds until the 202, which is sent after the queue has synced, and until a get by id shows the change "+
		"(polled every %s)", b.Sizes.Triggers, testbed.DocumentPollInterval)}
	for _, on := range []struct{ what, url string }{
		{"Elasticsearch", b.ElasticsearchURL},
		{"embedded index", ""},
	} {
		if on.what != "embedded index" && on.url == "" {
			report.Note("%s is skipped: it needs --elasticsearch", on.what)
			continue
		}
		b.Say("trigger: %s", on.what)
		accepted, indexed, err := triggers(ctx, b, on.url)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", on.what, err)
		}
		results.AddLatencies(report, on.what+": 202", accepted, [3]*results.Target{nil, nil, results.AtMost(10)})
		results.AddLatencies(report, on.what+": in the index", indexed, [3]*results.Target{results.AtMost(30), results.AtMost(150), nil})
	}
	return report, nil
}

// triggers times triggers on one engine.
func triggers(ctx context.Context, b *testbed.Testbed, engineURL string) (accepted, indexed []float64, err error) {
	c := standin.Generate(1, b.Sizes.Triggers+testbed.UntimedTriggers)
	upstream, err := c.Serve()
	if err != nil {
		return nil, nil, err
	}
	defer upstream.Close()
	alias := b.NewName("trigger")
	t, err := b.StartTutti(ctx, upstream.URL(), engineURL, alias)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if engineURL != "" {
			err = errors.Join(err, dropAlias(context.WithoutCancel(ctx), b, alias))
		}
	}()
	defer func() { err = errors.Join(err, t.Stop(ctx)) }()
	if _, _, err := t.Client.Backfill(ctx); err != nil {
		return nil, nil, err
	}
	for i, a := range c.Analyses {
		taken, there, err := triggerOne(ctx, t, upstream, a)
		if err != nil {
			return nil, nil, err
		}
		if i >= testbed.UntimedTriggers {
			accepted = append(accepted, taken.Seconds()*1e3)
			indexed = append(indexed, there.Seconds()*1e3)
		}
	}
	return accepted, indexed, nil
}

// dropAlias removes the index behind an alias of the real engine.
func dropAlias(ctx context.Context, b *testbed.Testbed, alias string) error {
	e, err := direct.NewEngine(ctx, b.ElasticsearchURL)
	if err != nil {
		return err
	}
	defer e.Close()
	return e.Drop(ctx, alias)
}

// triggerOne changes an analysis, triggers it, and returns the times until the trigger is accepted and until the change is indexed.
func triggerOne(ctx context.Context, t *testbed.Tutti, upstream *testkit.SongServer, a dataset.Analysis) (accepted, indexed time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, testbed.TriggerTimeout)
	defer cancel()
	mark, err := change(upstream, a)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if _, err := t.Client.Trigger(ctx, testbed.RecordPath(a)); err != nil {
		return 0, 0, err
	}
	accepted = time.Since(began)
	for {
		stored, found, err := t.App.Index().Get(ctx, t.Alias, a.ID)
		if err != nil {
			return 0, 0, err
		}
		if found && changedTo(stored.Source, mark) {
			return accepted, time.Since(began), nil
		}
		if retry.Sleep(ctx, testbed.DocumentPollInterval) != nil {
			return 0, 0, core.NewError(core.CodeInternal, "a triggered change was not indexed")
		}
	}
}

// change changes an analysis in the repository and returns the mark that identifies the new version.
func change(upstream *testkit.SongServer, a dataset.Analysis) (string, error) {
	mark := time.Now().UTC().Format("2006-01-02T15:04:05.000000")
	body, err := sjson.SetBytes(a.Body, changedField, mark)
	if err != nil {
		return "", core.WrapError(core.CodeInternal, "changing an analysis", err)
	}
	return mark, upstream.Put(a.Study, body)
}

func changedTo(document []byte, mark string) bool {
	return gjson.GetBytes(document, changedField).String() == mark
}
