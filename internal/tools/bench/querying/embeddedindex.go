package querying

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/bench/direct"
	"tutti/internal/tools/bench/results"
	"tutti/internal/tools/bench/standin"
	"tutti/internal/tools/bench/testbed"
	"tutti/internal/tools/testkit/dataset"
	"tutti/internal/upstream"
)

// embeddedBatch is the number of documents of a batch.
const embeddedBatch = 1000

// EmbeddedIndex measures the embedded index: directly, and in the whole app with default settings.
func EmbeddedIndex(ctx context.Context, b *testbed.Testbed) (*results.Report, error) {
	c := standin.Generate(b.Sizes.Studies, b.Sizes.Documents)
	report := &results.Report{What: fmt.Sprintf("embedded index: %s documents of %s bytes with random ids in batches of %s, encoded, written and "+
		"synced to disk; and a backfill of %s through the whole app on embedded defaults; %d runs, a fresh folder each",
		results.Number(float64(b.Sizes.Documents)), results.Number(c.MeanBytes()), results.Number(embeddedBatch),
		results.Number(float64(b.Sizes.EmbeddedRecords)), b.Sizes.Pairs)}
	var alone, whole []float64
	for i := range b.Sizes.Pairs {
		own, err := embeddedWrites(ctx, b, c)
		if err != nil {
			return nil, err
		}
		app, err := embeddedBackfill(ctx, b)
		if err != nil {
			return nil, err
		}
		b.Say("embedded-index: run %d: %s documents/s alone, %s through the app", i+1, results.Number(own), results.Number(app))
		alone, whole = append(alone, own), append(whole, app)
	}
	report.Add(
		results.Figure{Name: "index alone, documents/s", Values: alone, Target: results.AtLeast(15_000)},
		results.Figure{Name: "whole app, documents/s", Values: whole},
	)
	return report, nil
}

// embeddedWrites writes a corpus into a new index and returns the documents per second.
func embeddedWrites(ctx context.Context, b *testbed.Testbed, c *standin.Corpus) (_ float64, err error) {
	dir, err := b.NewFolder()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	x, err := embedded.Open(embedded.Config{Dir: dir})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	const alias = "bench"
	if err := x.Ensure(ctx, index.Spec{Alias: alias, Known: mapping.Song()}); err != nil {
		return 0, err
	}
	documents := make([][]byte, len(c.Analyses))
	for i, a := range c.Analyses {
		documents[i] = upstream.Splice(nil, a.Body, testbed.Block("", alias))
	}
	began := time.Now()
	at := 0
	batch := core.Batch{Index: alias}
	for part := range slices.Chunk(c.Analyses, embeddedBatch) {
		fill(x, &batch, part, documents[at:])
		at += len(part)
		results, err := x.Write(ctx, batch)
		if err != nil {
			return 0, err
		}
		if bad := slices.IndexFunc(results, func(r core.Result) bool { return r.Outcome != core.OutcomeIndexed }); bad >= 0 {
			return 0, core.NewError(core.CodeInternal, fmt.Sprintf("a document became %s: %s", results[bad].Outcome, results[bad].Reason))
		}
	}
	took := time.Since(began)
	if err := x.Refresh(ctx, alias); err != nil {
		return 0, err
	}
	got, err := x.Count(ctx, alias, core.IndexScope{})
	if err != nil {
		return 0, err
	}
	return results.Rate(len(c.Analyses), took), direct.HoldsAll(got, len(c.Analyses))
}

// fill adds analyses with their documents to the batch.
func fill(x index.Index, batch *core.Batch, part []dataset.Analysis, documents [][]byte) {
	batch.Body, batch.Items = batch.Body[:0], batch.Items[:0]
	version := core.Version(time.Now().UnixNano())
	for i, a := range part {
		item := core.BatchItem{Op: core.OpIndex, ID: a.ID, Version: version, Start: len(batch.Body)}
		w := core.Write{Op: core.OpIndex, ID: a.ID, Version: version, Document: documents[i]}
		batch.Body, item.DocStart, item.DocEnd = x.Encode(batch.Body, w)
		item.End = len(batch.Body)
		batch.Items = append(batch.Items, item)
	}
}

// embeddedBackfill indexes a repository in a new app and returns the documents per second.
func embeddedBackfill(ctx context.Context, b *testbed.Testbed) (_ float64, err error) {
	c := standin.Generate(min(b.Sizes.Studies, b.Sizes.EmbeddedRecords), b.Sizes.EmbeddedRecords)
	upstream, err := c.Serve()
	if err != nil {
		return 0, err
	}
	defer upstream.Close()
	t, err := b.StartTutti(ctx, upstream.URL(), "", b.NewName("embedded"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, t.Stop(ctx)) }()
	job, took, err := t.Client.Backfill(ctx)
	if err != nil {
		return 0, err
	}
	if err := direct.IndexedBy(job, len(c.Analyses)); err != nil {
		return 0, err
	}
	got, err := t.Count(ctx)
	if err != nil {
		return 0, err
	}
	return results.Rate(len(c.Analyses), took), direct.HoldsAll(got, len(c.Analyses))
}
