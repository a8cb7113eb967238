package bench

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
	"tutti/internal/tools/testkit"
	"tutti/internal/upstream"
)

// embeddedBatch is the number of documents of a batch.
const embeddedBatch = 1000

// embeddedIndex measures the embedded index: directly, and in the whole app with default settings.
func (b *bench) embeddedIndex(ctx context.Context) (*Report, error) {
	c := generate(b.Sizes.Studies, b.Sizes.Documents)
	report := &Report{What: fmt.Sprintf("embedded index: %s documents of %s bytes with random ids in batches of %s, encoded, written and "+
		"synced to disk; and a backfill of %s through the whole app on embedded defaults; %d runs, a fresh folder each",
		number(float64(b.Sizes.Documents)), number(c.each()), number(embeddedBatch),
		number(float64(b.Sizes.EmbeddedRecords)), b.Sizes.Pairs)}
	var alone, whole []float64
	for i := range b.Sizes.Pairs {
		own, err := b.embeddedWrites(ctx, c)
		if err != nil {
			return nil, err
		}
		app, err := b.embeddedBackfill(ctx)
		if err != nil {
			return nil, err
		}
		b.say("embedded-index: run %d: %s documents/s alone, %s through the app", i+1, number(own), number(app))
		alone, whole = append(alone, own), append(whole, app)
	}
	figure := Figure{Name: "index alone, documents/s", Values: alone, Target: atLeast(15_000)}
	report.add(figure)
	report.add(Figure{Name: "whole app, documents/s", Values: whole})
	report.note("noise: the runs of the index alone differ by %.0f %%", 100*figure.Spread())
	return report, nil
}

// embeddedWrites writes a corpus into a new index and returns the documents per second.
func (b *bench) embeddedWrites(ctx context.Context, c *corpus) (_ float64, err error) {
	dir, err := b.newFolder()
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
	documents := make([][]byte, len(c.analyses))
	for i, a := range c.analyses {
		documents[i] = upstream.Splice(nil, a.Body, block("", alias))
	}
	began := time.Now()
	at := 0
	batch := core.Batch{Index: alias}
	for part := range slices.Chunk(c.analyses, embeddedBatch) {
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
	return rate(len(c.analyses), took), holdsAll(got, len(c.analyses))
}

// holdsAll checks a count of documents.
func holdsAll(got int64, documents int) error {
	if got == int64(documents) {
		return nil
	}
	return core.NewError(core.CodeInternal, fmt.Sprintf("the index holds %d documents instead of %d", got, documents))
}

// fill adds analyses with their documents to the batch.
func fill(x index.Index, batch *core.Batch, part []testkit.Analysis, documents [][]byte) {
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
func (b *bench) embeddedBackfill(ctx context.Context) (_ float64, err error) {
	c := generate(min(b.Sizes.Studies, b.Sizes.EmbeddedRecords), b.Sizes.EmbeddedRecords)
	upstream, err := c.serve()
	if err != nil {
		return 0, err
	}
	defer upstream.Close()
	t, err := b.startTutti(ctx, upstream.URL(), "", b.newName("embedded"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, t.stop(ctx)) }()
	job, took, err := t.client.backfill(ctx)
	if err != nil {
		return 0, err
	}
	if err := indexedBy(job, len(c.analyses)); err != nil {
		return 0, err
	}
	got, err := t.count(ctx)
	if err != nil {
		return 0, err
	}
	return rate(len(c.analyses), took), holdsAll(got, len(c.analyses))
}
