package bench

import (
	"context"
	"errors"
	"fmt"

	"tutti/internal/core"
	"tutti/internal/tools/bench/direct"
	"tutti/internal/tools/bench/results"
	"tutti/internal/tools/bench/testbed"
)

// difference measures runs that compare an unchanged repository with its index.
func difference(ctx context.Context, b *testbed.Testbed) (_ *results.Report, err error) {
	report := &results.Report{What: fmt.Sprintf("runs of the difference over %s unchanged analyses in %d studies, from the trigger to the job's success, "+
		"by a process that did not fill the index", results.Number(float64(b.Sizes.Records)), b.Sizes.Studies)}
	from, err := b.StartUpstream(ctx, b.Sizes.Studies, b.Sizes.Records)
	if err != nil {
		return nil, err
	}
	defer from.Stop()
	alias := b.NewName("difference")
	server, err := b.StartServe(ctx, from.URL, b.ElasticsearchURL, alias)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dropAlias(context.WithoutCancel(ctx), b, alias)) }()
	c := direct.NewClient(server.URL)
	_, filled, err := c.Backfill(ctx)
	c.Close()
	server.Stop()
	if err != nil {
		return nil, err
	}
	if server, err = b.StartServe(ctx, from.URL, b.ElasticsearchURL, alias); err != nil { // with a data folder of its own
		return nil, err
	}
	defer server.Stop()
	c = direct.NewClient(server.URL)
	defer c.Close()
	took := results.Figure{Name: "seconds", Target: results.AtMost(20)}
	for range b.Sizes.Pairs {
		b.Say("difference: run %d", len(took.Values)+1)
		job, ran, err := c.Run(ctx, "?difference=true")
		if err != nil {
			return nil, err
		}
		if same := job.Get("totals.drift.unchanged").Int(); same != int64(b.Sizes.Records) {
			return nil, core.NewError(core.CodeInternal, fmt.Sprintf("%d of %d records were found unchanged: %.500s", same, b.Sizes.Records, job.Raw))
		}
		took.Values = append(took.Values, ran.Seconds())
	}
	_, most, err := testbed.ResidentMemory(server.Cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	report.Add(took)
	report.Add(results.Figure{Name: "the backfill before, seconds", Values: []float64{filled.Seconds()}})
	report.Add(results.Figure{Name: "highest resident memory of the process, MB", Values: []float64{most}, Target: results.AtMost(150)})
	return report, nil
}
