package bench

import (
	"context"
	"errors"
	"fmt"

	"tutti/internal/core"
	"tutti/internal/tools/bench/direct"
	"tutti/internal/tools/bench/results"
)

// difference measures runs that compare an unchanged repository with its index.
func (b *bench) difference(ctx context.Context) (_ *results.Report, err error) {
	report := &results.Report{What: fmt.Sprintf("runs of the difference over %s unchanged analyses in %d studies, from the trigger to the job's success, "+
		"by a process that did not fill the index", results.Number(float64(b.Sizes.Records)), b.Sizes.Studies)}
	from, err := b.startUpstream(ctx, b.Sizes.Studies, b.Sizes.Records)
	if err != nil {
		return nil, err
	}
	defer from.stop()
	alias := b.newName("difference")
	server, err := b.startServe(ctx, from.url, b.ElasticsearchURL, alias)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.dropAlias(context.WithoutCancel(ctx), alias)) }()
	c := direct.NewClient(server.url)
	_, filled, err := c.Backfill(ctx)
	c.Close()
	server.stop()
	if err != nil {
		return nil, err
	}
	if server, err = b.startServe(ctx, from.url, b.ElasticsearchURL, alias); err != nil { // with a data folder of its own
		return nil, err
	}
	defer server.stop()
	c = direct.NewClient(server.url)
	defer c.Close()
	took := results.Figure{Name: "seconds", Target: results.AtMost(20)}
	for range b.Sizes.Pairs {
		b.say("difference: run %d", len(took.Values)+1)
		job, ran, err := c.Run(ctx, "?difference=true")
		if err != nil {
			return nil, err
		}
		if same := job.Get("totals.drift.unchanged").Int(); same != int64(b.Sizes.Records) {
			return nil, core.NewError(core.CodeInternal, fmt.Sprintf("%d of %d records were found unchanged: %.500s", same, b.Sizes.Records, job.Raw))
		}
		took.Values = append(took.Values, ran.Seconds())
	}
	_, most, err := status(server.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	report.Add(took)
	report.Add(results.Figure{Name: "the backfill before, seconds", Values: []float64{filled.Seconds()}})
	report.Add(results.Figure{Name: "highest resident memory of the process, MB", Values: []float64{most}, Target: results.AtMost(150)})
	return report, nil
}
