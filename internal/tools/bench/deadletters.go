package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/tidwall/gjson"
	"golang.org/x/sync/errgroup"

	"tutti/internal/base/retry"
	"tutti/internal/core"
	"tutti/internal/tools/bench/direct"
	"tutti/internal/tools/bench/results"
	"tutti/internal/tools/bench/testbed"
	"tutti/internal/tools/testkit"
	"tutti/internal/tools/testkit/dataset"
)

// deadLettersTimeout bounds the time until all retried dead letters are gone.
const deadLettersTimeout = 30 * time.Minute

// deadLetterReads is the number of reads of a page of the list.
const deadLetterReads = 10

// deadLetterNumbers are the numbers of dead letters that are retried at once, at most Sizes.DeadLetters.
func deadLetterNumbers(b *testbed.Testbed) []int {
	numbers := slices.DeleteFunc([]int{50_000}, func(n int) bool { return n >= b.Sizes.DeadLetters })
	return append(numbers, b.Sizes.DeadLetters)
}

// deadLetters measures the list and the retry of many dead letters.
func deadLetters(ctx context.Context, b *testbed.Testbed) (*results.Report, error) {
	report := &results.Report{What: fmt.Sprintf("dead letters of records that the repository no longer has, in a `tutti serve` with embedded defaults: GET "+
		"/dead-letters with 50 of them, each after the removal of one, %d times; their export as NDJSON; then POST /dead-letters/retry of all, where "+
		"memory (RssAnon, read every %s) is that of the server until none is left", deadLetterReads, testbed.MemoryPollInterval)}
	for _, n := range deadLetterNumbers(b) {
		if err := retryDeadLetters(ctx, b, report, n); err != nil {
			return nil, fmt.Errorf("%d dead letters: %w", n, err)
		}
	}
	return report, nil
}

func retryDeadLetters(ctx context.Context, b *testbed.Testbed, report *results.Report, n int) (err error) {
	upstream, err := testkit.NewSong(testkit.SongConfig{})
	if err != nil {
		return err
	}
	defer upstream.Close()
	study := dataset.GenerateStudies(1)[0]
	upstream.AddStudy(study)
	dir, err := b.NewFolder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	alias := b.NewName("deadletters")
	b.Say("dead-letters: storing %d", n)
	if err := storeDeadLetters(ctx, b, testbed.Settings(dir, upstream.URL(), "", alias), dir, study, n); err != nil {
		return err
	}
	server, err := b.StartServeIn(ctx, dir, upstream.URL(), "", alias)
	if err != nil {
		return err
	}
	defer server.Stop()
	c := direct.NewClient(server.URL)
	defer c.Close()
	c.HTTP.Timeout = deadLettersTimeout
	before, err := testbed.OwnMemory(server.Cmd.Process.Pid)
	if err != nil {
		return err
	}
	name := func(what string) string { return results.Number(float64(n)) + " dead letters: " + what }
	pages, exported, err := listDeadLetters(ctx, c, n)
	if err != nil {
		return err
	}
	b.Say("dead-letters: retrying")
	began := time.Now()
	var answered, gone time.Duration
	most, err := server.MaxMemoryDuring(ctx, func() error {
		if _, err := c.Call(ctx, http.MethodPost, "/dead-letters/retry", "", nil); err != nil {
			return err
		}
		answered = time.Since(began)
		for {
			left, err := anyDeadLetter(ctx, c)
			if gone = time.Since(began); err != nil || !left {
				return err
			}
			if gone > deadLettersTimeout {
				return core.NewError(core.CodeInternal, "dead letters were left")
			}
			if err := retry.Sleep(ctx, direct.JobPollInterval); err != nil {
				return err
			}
		}
	})
	if err != nil {
		return err
	}
	results.AddLatencies(report, name("GET /dead-letters"), pages, [3]*results.Target{nil, results.AtMost(maxJobTime), nil})
	report.Add(
		results.Figure{Name: name("exported in, s"), Values: []float64{exported.Seconds()}},
		results.Figure{Name: name("answered after, ms"), Values: []float64{answered.Seconds() * 1e3}},
		results.Figure{Name: name("none left after, s"), Values: []float64{gone.Seconds()}},
		results.Figure{Name: name("memory before, MB"), Values: []float64{before}},
		results.Figure{Name: name("memory above that before, at most, MB"), Values: []float64{max(0, most-before)}, Target: results.AtMost(100)},
	)
	return nil
}

// listDeadLetters returns how long pages of the list took in milliseconds, each after one of n dead letters was removed, and the export.
func listDeadLetters(ctx context.Context, c *direct.Client, n int) (pages []float64, exported time.Duration, err error) {
	reads := min(deadLetterReads, n/3)
	for range reads + 1 { // the first removes none
		began := time.Now()
		answer, err := c.Call(ctx, http.MethodGet, "/dead-letters?limit=50", "", nil)
		if err != nil {
			return nil, 0, err
		}
		pages = append(pages, time.Since(began).Seconds()*1e3)
		id := gjson.GetBytes(answer, "deadLetters.0.id").String()
		if _, err := c.Call(ctx, http.MethodDelete, "/dead-letters/"+id, "", nil); err != nil {
			return nil, 0, err
		}
	}
	exported, err = exportDeadLetters(ctx, c, n-reads-1)
	return pages[1:], exported, err
}

// exportDeadLetters returns how long the export of n dead letters takes.
func exportDeadLetters(ctx context.Context, c *direct.Client, n int) (took time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Base+"/dead-letters", nil)
	if err != nil {
		return 0, core.WrapError(core.CodeInternal, "making a request", err)
	}
	req.Header.Set("Accept", "application/x-ndjson")
	began := time.Now()
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return 0, core.WrapError(core.CodeUnavailable, "exporting dead letters", err)
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	lines := 0
	for scanner := bufio.NewScanner(resp.Body); ; lines++ {
		if !scanner.Scan() {
			err = scanner.Err()
			break
		}
	}
	if err == nil && lines != n {
		err = core.NewError(core.CodeInternal, fmt.Sprintf("the export has %d lines, want %d", lines, n))
	}
	return time.Since(began), err
}

// storeDeadLetters stores the dead letters in the data folder of a server that is not running.
func storeDeadLetters(ctx context.Context, b *testbed.Testbed, variables []string, dir, study string, n int) error {
	t, err := b.StartApp(ctx, dir, "", variables)
	if err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(testbed.PreparationConcurrency)
	for i := range n {
		group.Go(func() error {
			id := fmt.Sprintf("9a8f1c9e-4f0b-4c57-8f1c-%012d", i)
			return t.App.Queue().DeadLetters().Put(groupCtx, core.DeadLetter{
				Repository: direct.RepositoryCode, Organization: study, RecordID: id, Reason: core.ReasonRejected, Attempts: 1,
			})
		})
	}
	err = group.Wait()
	t.Client.Close()
	return errors.Join(err, t.App.Stop(context.WithoutCancel(ctx)))
}

func anyDeadLetter(ctx context.Context, c *direct.Client) (bool, error) {
	answer, err := c.Call(ctx, http.MethodGet, "/dead-letters?limit=1", "", nil)
	return gjson.GetBytes(answer, "deadLetters.#").Int() > 0, err
}
