package querying

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/base/retry"
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

const (
	// downloadPart: a small download has 1/downloadPart of the rows, and a round consists of downloadPart small downloads.
	downloadPart = 10
	// settleRounds bounds the number of rounds; the memory has settled when a round needs less than settledBelow times the memory of
	// the previous round.
	settleRounds = 5
	settledBelow = 1.02
)

// Download measures downloads of many rows and the server's memory during them, on the embedded index, and on a real engine when there
// is one.
func Download(ctx context.Context, b *testbed.Testbed) (*results.Report, error) {
	report := &results.Report{What: fmt.Sprintf("downloads of %s analyses as TSV with %d columns from `tutti serve` as a separate process, by one client "+
		"that reads as fast as it can; memory is what the process holds itself (RssAnon, read every %s), not what the system keeps of the "+
		"index's files for it; growth is the maximum while all rows are downloaded, relative to the maximum while a tenth is downloaded repeatedly until it no longer grows",
		results.Number(float64(b.Sizes.Downloaded)), len(hitFields()), testbed.MemoryPollInterval)}
	if err := downloadEmbedded(ctx, b, report); err != nil {
		return nil, fmt.Errorf("on the embedded index: %w", err)
	}
	if b.ElasticsearchURL == "" {
		report.Note("Elasticsearch is skipped: it needs --elasticsearch")
		return report, nil
	}
	if err := downloadElastic(ctx, b, report); err != nil {
		return nil, fmt.Errorf("on Elasticsearch: %w", err)
	}
	return report, nil
}

// downloadEmbedded measures a server with an embedded index that was filled before the start.
func downloadEmbedded(ctx context.Context, b *testbed.Testbed, report *results.Report) (err error) {
	dir, err := b.NewFolder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	x, err := embedded.Open(embedded.Config{Dir: filepath.Join(dir, "index")})
	if err != nil {
		return err
	}
	r := downloadRun{b: b, dir: dir, alias: b.NewName("download"), engine: "embedded index"}
	if err := errors.Join(r.stock(ctx, x), x.Close()); err != nil {
		return err
	}
	return r.run(ctx, report)
}

// downloadElastic measures a server on a real engine and the engine itself.
func downloadElastic(ctx context.Context, b *testbed.Testbed, report *results.Report) (err error) {
	e, err := direct.NewEngine(ctx, b.ElasticsearchURL)
	if err != nil {
		return err
	}
	defer e.Close()
	dir, err := b.NewFolder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := downloadRun{b: b, dir: dir, alias: b.NewName("download"), engine: "Elasticsearch", engineURL: b.ElasticsearchURL}
	defer func() { err = errors.Join(err, e.Drop(context.WithoutCancel(ctx), r.alias)) }()
	if err := r.stock(ctx, e.Index); err != nil {
		return err
	}
	r.alone = func(ctx context.Context) (time.Duration, error) {
		return e.Pages(ctx, r.alias, b.Sizes.Downloaded, hitFields())
	}
	return r.run(ctx, report)
}

// downloadRun is a run of a server with one engine.
type downloadRun struct {
	b *testbed.Testbed
	// dir is the server's directory, alias its index, and engine the name of the engine in the figures.
	dir, alias, engine string
	// engineURL is empty for the embedded index.
	engineURL string
	// alone reads the same rows directly from the engine; nil for the embedded index.
	alone  func(ctx context.Context) (time.Duration, error)
	server *testbed.Child
	client *direct.Client
}

// stock writes the analyses to an index, in parts so that they need little memory.
func (r *downloadRun) stock(ctx context.Context, x index.Index) error {
	if err := x.Ensure(ctx, index.Spec{Alias: r.alias, Known: mapping.Song()}); err != nil {
		return err
	}
	all := r.b.Sizes.Downloaded
	r.b.Say("download: %s: writing %d analyses", r.engine, all)
	batch := core.Batch{Index: r.alias}
	studies := dataset.GenerateStudies(max(1, all/studyPart))
	left := all
	for i, study := range studies {
		n := left / (len(studies) - i)
		left -= n
		for part := range slices.Chunk(dataset.GenerateAnalyses(standin.Seed, study, n), embeddedBatch) {
			documents := make([][]byte, len(part))
			for j := range part {
				documents[j] = upstream.Splice(nil, part[j].Body, testbed.Block("", r.alias))
			}
			fill(x, &batch, part, documents)
			if _, err := x.Write(ctx, batch); err != nil {
				return err
			}
		}
	}
	if err := x.Refresh(ctx, r.alias); err != nil {
		return err
	}
	got, err := x.Count(ctx, r.alias, core.IndexScope{})
	if err != nil {
		return err
	}
	return direct.HoldsAll(got, all)
}

// run measures the server.
func (r *downloadRun) run(ctx context.Context, report *results.Report) (err error) {
	if r.server, err = r.b.StartServeIn(ctx, r.dir, unusedUpstream, r.engineURL, r.alias); err != nil {
		return err
	}
	defer r.server.Stop()
	r.client = direct.NewClient(r.server.URL)
	r.client.HTTP.Timeout = 0 // downloads have no timeout
	defer r.client.Close()
	if err := r.available(ctx); err != nil {
		return err
	}
	if _, err := r.rows(ctx, 1); err != nil {
		return err
	}
	return r.measure(ctx, report)
}

// measure compares downloads of all rows with small ones, and with reading the rows directly from the engine when there is one. Enough
// small ones are made to let the heap reach the size that the garbage collector allows: a large download must not hold more than a small
// one.
func (r *downloadRun) measure(ctx context.Context, report *results.Report) error {
	before, err := testbed.OwnMemory(r.server.Cmd.Process.Pid)
	if err != nil {
		return err
	}
	all := r.b.Sizes.Downloaded
	small := max(1, all/downloadPart)
	few, err := r.settled(ctx, small)
	if err != nil {
		return err
	}
	var alone []float64
	var many []downloaded
	whole := func() (downloaded, error) { return r.watched(ctx, all, 1) }
	if r.alone == nil {
		for range r.b.Sizes.Pairs {
			d, err := whole()
			if err != nil {
				return err
			}
			many = append(many, d)
		}
	} else {
		bases, others, err := results.Alternate(r.b.Sizes.Pairs, func() (downloaded, error) {
			took, err := r.alone(ctx)
			return downloaded{took: took}, err
		}, whole)
		if err != nil {
			return err
		}
		many, alone = others, results.Select(bases, func(d downloaded) float64 { return results.Rate(all, d.took) })
	}
	r.figures(report, before, few, alone, many)
	return nil
}

// figures adds the figures of one engine: the memory before and during the last two rounds of small downloads, the rows a second that
// the engine alone reads, and the downloads of all rows.
func (r *downloadRun) figures(report *results.Report, before float64, few, alone []float64, many []downloaded) {
	all := r.b.Sizes.Downloaded
	figure := func(what string, target *results.Target, values ...float64) results.Figure {
		return results.Figure{Name: r.engine + ": " + what, Target: target, Values: values}
	}
	speed := results.Select(many, func(d downloaded) float64 { return results.Rate(all, d.took) })
	if alone == nil {
		report.Add(figure("rows/s", results.AtLeast(50_000), speed...))
	} else {
		report.Add(
			figure("alone, pages of "+results.Number(direct.PageSize)+" by hand, rows/s", nil, alone...),
			figure("rows/s", nil, speed...),
			results.Ratio(r.engine+": tutti / engine", results.AtLeast(0.85), alone, speed),
		)
	}
	most := figure("memory at most, downloads of "+results.Number(float64(all))+", MB", nil,
		results.Select(many, func(d downloaded) float64 { return d.most })...)
	report.Add(
		figure("MB/s", nil, results.Select(many, func(d downloaded) float64 { return float64(d.bytes) / testbed.Megabyte / d.took.Seconds() })...),
		figure("memory before, MB", nil, before),
		figure("memory at most, downloads of "+results.Number(float64(max(1, all/downloadPart)))+", MB", nil, few...),
		most,
		results.Ratio(r.engine+": growth, ten times as many rows", results.AtMost(1.15), few, []float64{most.Max()}),
	)
}

// settled runs rounds of small downloads until the maximum memory no longer grows, and returns that of the last two in megabytes.
func (r *downloadRun) settled(ctx context.Context, rows int) (most []float64, err error) {
	for range settleRounds {
		d, err := r.watched(ctx, rows, downloadPart)
		if err != nil {
			return nil, err
		}
		most = append(most, d.most)
		if n := len(most); n > 1 && most[n-1] < most[n-2]*settledBelow {
			break
		}
	}
	return most[len(most)-2:], nil
}

// unusedUpstream is the URL of a repository that is never called.
const unusedUpstream = "http://127.0.0.1:9"

// available waits until the catalogue of the index is available.
func (r *downloadRun) available(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, testbed.ChildStart)
	defer cancel()
	for {
		all, err := r.client.Call(ctx, http.MethodGet, "/introspection", "", nil)
		if err != nil {
			return err
		}
		if gjson.GetBytes(all, "catalogs."+r.alias+".status").String() == "available" {
			return nil
		}
		if err := retry.Sleep(ctx, testbed.MemoryPollInterval); err != nil {
			return fmt.Errorf("waiting for the catalogue of the index: %w", err)
		}
	}
}

// downloaded holds the results of downloads.
type downloaded struct {
	took  time.Duration
	bytes int64
	// most is the maximum memory of the server during them, in megabytes.
	most float64
}

// watched runs consecutive downloads while it polls the server's memory.
func (r *downloadRun) watched(ctx context.Context, rows, times int) (downloaded, error) {
	var sum downloaded
	var err error
	sum.most, err = r.server.MaxMemoryDuring(ctx, func() error {
		for range times {
			d, err := r.rows(ctx, rows)
			if err != nil {
				return err
			}
			sum.took += d.took
			sum.bytes += d.bytes
		}
		return nil
	})
	if err != nil {
		return sum, err
	}
	r.b.Say("download: %s: %d times %d rows: %s rows/s, %s MB at most", r.engine, times, rows, results.Number(results.Rate(times*rows, sum.took)), results.Number(sum.most))
	return sum, nil
}

// rows downloads a number of rows, and checks that they arrived.
func (r *downloadRun) rows(ctx context.Context, rows int) (d downloaded, err error) {
	body := fmt.Sprintf(`{"format":"tsv","columns":["%s"],"maxRows":%d}`, strings.Join(hitFields(), `","`), rows)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.client.Base+"/"+r.alias+"/download", strings.NewReader(body))
	if err != nil {
		return d, core.WrapError(core.CodeInternal, "making a request", err)
	}
	req.Header.Set("Content-Type", core.MediaJSON)
	began := time.Now()
	resp, err := r.client.HTTP.Do(req)
	if err != nil {
		return d, core.WrapError(core.CodeUnavailable, "requesting a download", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		answer, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
		return d, core.NewError(core.CodeUnavailable, fmt.Sprintf("the download was answered %s: %s", resp.Status, answer))
	}
	c := counter{}
	if d.bytes, err = io.CopyBuffer(&c, resp.Body, make([]byte, 256<<10)); err != nil {
		return d, core.WrapError(core.CodeUnavailable, "reading a download", err)
	}
	d.took = time.Since(began)
	if wantTabs := (rows + 1) * (len(hitFields()) - 1); c.lines != rows+1 || c.tabs != wantTabs {
		return d, core.NewError(core.CodeInternal, fmt.Sprintf("the download has %d lines with %d tabs instead of %d with %d", c.lines, c.tabs, rows+1, wantTabs))
	}
	return d, nil
}

// counter counts the separators of rows and cells; neither is part of a cell.
type counter struct{ lines, tabs int }

var _ io.Writer = (*counter)(nil)

// Write counts.
func (c *counter) Write(b []byte) (int, error) {
	c.lines += bytes.Count(b, []byte{'\n'})
	c.tabs += bytes.Count(b, []byte{'\t'})
	return len(b), nil
}
