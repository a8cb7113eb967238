package querying

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"tutti/internal/core"
	"tutti/internal/filter/query"
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

const (
	// studyPart is the number of analyses generated at once, to limit the memory besides the index.
	studyPart = 10_000
	// answersTimed is the number of repetitions of each query.
	answersTimed = 100
	// rewrites is how often each document is rewritten, and readers the number of concurrent readers beside a writer of
	// writtenBeside documents per second.
	rewrites      = 5
	readers       = 16
	writtenBeside = 1000
)

// EmbeddedSearch measures query times of the embedded index, its memory, and its start.
func EmbeddedSearch(ctx context.Context, b *testbed.Testbed) (*results.Report, error) {
	report := &results.Report{What: fmt.Sprintf("answers of the embedded index over analyses with random ids, written in batches of %s; each question %d "+
		"times, one after the other; memory is the heap in use; a start is timed to the first answer, also on a copy of the folder that was "+
		"taken while it was open, as a kill leaves it", results.Number(embeddedBatch), answersTimed)}
	for _, s := range []struct {
		documents                   int
		facets, hits, memory, ready float64
	}{
		{b.Sizes.EmbeddedSearched, 10, 5, 150, 3000}, {b.Sizes.EmbeddedLarge, 90, 40, 900, 3000},
	} {
		if s.documents == 0 {
			continue
		}
		r := embeddedRun{b: b, documents: s.documents, rewritten: s.documents == b.Sizes.EmbeddedSearched}
		if err := r.run(ctx); err != nil {
			return nil, err
		}
		name := func(what string) string { return results.Number(float64(s.documents)) + " documents: " + what }
		report.Add(results.Figure{Name: name("written, documents/s"), Values: []float64{r.written}, Target: results.AtLeast(15_000)})
		results.AddLatencies(report, name("8 facets with 2 filters"), r.facets, [3]*results.Target{results.AtMost(s.facets)})
		results.AddLatencies(report, name("20 sorted hits"), r.hits, [3]*results.Target{results.AtMost(s.hits)})
		report.Add(results.Figure{Name: name("memory, MB"), Values: []float64{r.memory}, Target: results.AtMost(s.memory)})
		report.Add(results.Figure{Name: name("ready after a restart, ms"), Values: []float64{r.restart}, Target: results.AtMost(s.ready)})
		report.Add(results.Figure{Name: name("ready after a kill, ms"), Values: []float64{r.killed}, Target: results.AtMost(s.ready)})
		report.Add(results.Figure{Name: name("disk / raw data"), Values: []float64{r.disk}, Target: results.AtMost(2.5)})
		if r.rewritten {
			report.Add(results.Figure{Name: name("memory once all were rewritten five times, MB"), Values: []float64{r.memoryAfter}, Target: results.AtMost(s.memory)})
			report.Add(results.Figure{Name: name("disk / raw data once all were rewritten five times"), Values: []float64{r.diskAfter}, Target: results.AtMost(2.5)})
			report.Add(results.Ratio(name("16 readers beside a writer of 1,000/s / alone"), results.AtLeast(0.8), r.alone, r.beside))
		}
	}
	return report, nil
}

// embeddedRun is a run with one size of the index.
type embeddedRun struct {
	b         *testbed.Testbed
	documents int
	raw       int64
	// rewritten also measures the state after many rewrites.
	rewritten bool

	written, memory, restart, killed, disk float64
	memoryAfter, diskAfter                 float64
	facets, hits, alone, beside            []float64
}

const searchedAlias = "bench"

func (r *embeddedRun) run(ctx context.Context) (err error) {
	dir, err := r.b.NewFolder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	before := testbed.HeapInUse()
	x, err := embedded.Open(embedded.Config{Dir: dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	if err := x.Ensure(ctx, index.Spec{Alias: searchedAlias, Known: mapping.Song()}); err != nil {
		return err
	}
	if err := r.write(ctx, x); err != nil {
		return err
	}
	r.b.Say("embedded-search: %d documents written, %s a second", r.documents, results.Number(r.written))
	if r.facets, err = timeSearches(ctx, x, facetRequests()); err != nil {
		return err
	}
	if r.hits, err = timeSearches(ctx, x, hitRequests()); err != nil {
		return err
	}
	r.memory = (testbed.HeapInUse() - before) / testbed.Megabyte
	size, err := folderBytes(dir)
	if err != nil {
		return err
	}
	r.disk = float64(size) / float64(r.raw)
	if r.killed, err = r.afterKill(ctx, dir); err != nil {
		return err
	}
	if r.rewritten {
		if err := r.rewrite(ctx, x, dir, before); err != nil {
			return err
		}
	}
	if err := x.Close(); err != nil {
		return err
	}
	r.restart, err = r.ready(ctx, dir)
	return err
}

// write fills the index, in parts whose generation is not timed.
func (r *embeddedRun) write(ctx context.Context, x *embedded.Index) error {
	var took time.Duration
	batch := core.Batch{Index: searchedAlias}
	studies := dataset.GenerateStudies(max(1, r.documents/studyPart))
	left := r.documents
	for i, study := range studies {
		n := left / (len(studies) - i)
		left -= n
		analyses := dataset.GenerateAnalyses(standin.Seed, study, n)
		documents := make([][]byte, n)
		for j := range analyses {
			documents[j] = upstream.Splice(nil, analyses[j].Body, testbed.Block("", searchedAlias))
			r.raw += int64(len(documents[j]))
		}
		began, at := time.Now(), 0
		for part := range slices.Chunk(analyses, embeddedBatch) {
			fill(x, &batch, part, documents[at:])
			at += len(part)
			if _, err := x.Write(ctx, batch); err != nil {
				return err
			}
		}
		took += time.Since(began)
	}
	r.written = results.Rate(r.documents, took)
	got, err := x.Count(ctx, searchedAlias, core.IndexScope{})
	if err != nil {
		return err
	}
	return direct.HoldsAll(got, r.documents)
}

// rewrite measures memory and disk after rewriting all documents, and readers beside a writer.
func (r *embeddedRun) rewrite(ctx context.Context, x *embedded.Index, dir string, before float64) error {
	raw, written := r.raw, r.written
	analyses := dataset.GenerateAnalyses(standin.Seed, dataset.GenerateStudies(1)[0], min(studyPart, r.documents))
	var err error
	r.alone, r.beside, err = results.Alternate(r.b.Sizes.Pairs,
		func() (float64, error) { return r.facetRate(ctx, x, nil) },
		func() (float64, error) { return r.facetRate(ctx, x, analyses) })
	if err != nil {
		return err
	}
	for range rewrites {
		if err := r.write(ctx, x); err != nil {
			return err
		}
	}
	r.raw, r.written = raw, written
	if _, err := timeSearches(ctx, x, facetRequests()); err != nil {
		return err
	}
	r.memoryAfter = (testbed.HeapInUse() - before) / testbed.Megabyte
	size, err := folderBytes(dir)
	r.diskAfter = float64(size) / float64(raw)
	return err
}

// facetRate returns the pages of facets per second that the readers get, beside a writer that rewrites analyses when there are any.
func (r *embeddedRun) facetRate(ctx context.Context, x *embedded.Index, analyses []dataset.Analysis) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, r.b.Sizes.LoadFor)
	defer cancel()
	all, within := errgroup.WithContext(context.WithoutCancel(ctx))
	var answers atomic.Int64
	for range readers {
		all.Go(func() error {
			for first := true; (first || ctx.Err() == nil) && within.Err() == nil; first = false {
				if _, err := x.Search(within, searchedAlias, facetRequests()); err != nil {
					return err
				}
				answers.Add(1)
			}
			return nil
		})
	}
	if len(analyses) > 0 {
		all.Go(func() error { return r.writeBeside(ctx, within, x, analyses) })
	}
	began := time.Now()
	err := all.Wait()
	return float64(answers.Load()) / time.Since(began).Seconds(), err
}

// writeBeside writes at a steady rate, ten times a second, until until ends.
func (r *embeddedRun) writeBeside(until, ctx context.Context, x *embedded.Index, analyses []dataset.Analysis) error {
	tick := time.NewTicker(time.Second / 10)
	defer tick.Stop()
	batch := core.Batch{Index: searchedAlias}
	documents := make([][]byte, writtenBeside/10)
	for at := 0; ; at += len(documents) {
		select {
		case <-until.Done():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		part := make([]dataset.Analysis, len(documents))
		for i := range part {
			part[i] = analyses[(at+i)%len(analyses)]
			documents[i] = upstream.Splice(nil, part[i].Body, testbed.Block("", searchedAlias))
		}
		fill(x, &batch, part, documents)
		if _, err := x.Write(ctx, batch); err != nil {
			return err
		}
	}
}

// afterKill times a start on a copy of an open directory.
func (r *embeddedRun) afterKill(ctx context.Context, dir string) (ms float64, err error) {
	killed, err := r.b.NewFolder()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(killed)) }()
	if err := os.RemoveAll(killed); err != nil {
		return 0, core.WrapError(core.CodeInternal, "creating a directory for a copy", err)
	}
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		return 0, core.WrapError(core.CodeInternal, "copying the index", err)
	}
	return r.ready(ctx, killed)
}

// ready times a start until the first response, which must cover all documents.
func (r *embeddedRun) ready(ctx context.Context, dir string) (ms float64, err error) {
	began := time.Now()
	x, err := embedded.Open(embedded.Config{Dir: dir})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	results, err := x.Search(ctx, searchedAlias, []index.SearchRequest{{Total: true}})
	if err != nil {
		return 0, err
	}
	ms = time.Since(began).Seconds() * 1e3
	return ms, direct.HoldsAll(results[0].Total, r.documents)
}

// timeSearches repeats searches and returns the milliseconds of each.
func timeSearches(ctx context.Context, x *embedded.Index, reqs []index.SearchRequest) ([]float64, error) {
	ms := make([]float64, answersTimed)
	for i := range ms {
		began := time.Now()
		results, err := x.Search(ctx, searchedAlias, reqs)
		if err != nil {
			return nil, err
		}
		ms[i] = time.Since(began).Seconds() * 1e3
		if len(results) != len(reqs) {
			return nil, core.NewError(core.CodeInternal, "a search failed")
		}
	}
	return ms, nil
}

// keywordField is a field of analyses, in elements when nested is not "".
func keywordField(name, nested string) query.Field {
	f := query.Field{Path: name, Type: "keyword"}
	if nested != "" {
		f.Nested = []string{nested}
	}
	return f
}

// chosenFilters returns the two filters of a page.
func chosenFilters() (study, kind *query.Node) {
	return query.Exactly(keywordField("experiment.experimentalStrategy", ""), []string{"WGS", "WXS"}),
		query.Exactly(keywordField("files.fileType", "files"), []string{"VCF", "BAM", "CRAM"})
}

// facetRequests returns a page of eight facets, each without its own clause.
func facetRequests() []index.SearchRequest {
	strategies, kinds := chosenFilters()
	all := index.SearchRequest{Filter: query.Both(strategies, kinds), Total: true}
	without := map[string]*index.SearchRequest{
		"experiment.experimentalStrategy": {Filter: kinds}, "files.fileType": {Filter: strategies},
	}
	for _, f := range facetFields() {
		facet := index.Facet{Field: keywordField(f.name, f.nested), Buckets: &index.Buckets{Max: 20}, Missing: true}
		if own := without[f.name]; own != nil {
			own.Facets = append(own.Facets, facet)
			continue
		}
		if f.nested == "files" {
			facet.Elements = kinds.Children[0]
		}
		all.Facets = append(all.Facets, facet)
	}
	return []index.SearchRequest{all, *without["experiment.experimentalStrategy"], *without["files.fileType"]}
}

// hitRequests returns a page of a table sorted by date.
func hitRequests() []index.SearchRequest {
	strategies, kinds := chosenFilters()
	return []index.SearchRequest{{
		Filter: query.Both(strategies, kinds), Total: true,
		Hits: &index.HitsRequest{Size: 20, Sort: []index.Sort{
			{Field: query.Field{Path: "updatedAt", Type: "date"}, Descending: true}, {Field: keywordField("analysisId", "")},
		}},
	}}
}

// folderBytes returns the size of a directory's files.
func folderBytes(dir string) (int64, error) {
	size := int64(0)
	err := fs.WalkDir(os.DirFS(dir), ".", func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		return 0, core.WrapError(core.CodeInternal, "measuring the index", err)
	}
	return size, nil
}
