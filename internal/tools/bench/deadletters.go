package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/tidwall/gjson"
	"golang.org/x/sync/errgroup"

	"tutti/internal/core"
	"tutti/internal/retry"
	"tutti/internal/tools/bench/direct"
	"tutti/internal/tools/bench/results"
	"tutti/internal/tools/testkit"
)

// deadLettersTimeout bounds the time until all retried dead letters are gone.
const deadLettersTimeout = 30 * time.Minute

// deadLetters measures the retry of all dead letters.
func (b *bench) deadLetters(ctx context.Context) (_ *results.Report, err error) {
	report := &results.Report{What: fmt.Sprintf("POST /dead-letters/retry of %s dead letters, of records that the repository no longer has, by a `tutti serve` "+
		"with embedded defaults; memory (RssAnon, read every %s) is that of the server until no dead letter is left",
		results.Number(float64(b.Sizes.DeadLetters)), memoryPollInterval)}
	upstream, err := testkit.NewSong(testkit.SongConfig{})
	if err != nil {
		return nil, err
	}
	defer upstream.Close()
	study := testkit.GenerateStudies(1)[0]
	upstream.AddStudy(study)
	dir, err := b.newFolder()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	alias := b.newName("deadletters")
	b.say("dead-letters: storing %d", b.Sizes.DeadLetters)
	if err := b.storeDeadLetters(ctx, settings(dir, upstream.URL(), "", alias), dir, study); err != nil {
		return nil, err
	}
	server, err := b.startServeIn(ctx, dir, upstream.URL(), "", alias)
	if err != nil {
		return nil, err
	}
	defer server.stop()
	c := direct.NewClient(server.url)
	defer c.Close()
	c.HTTP.Timeout = deadLettersTimeout
	if left, err := anyDeadLetter(ctx, c); err != nil || !left {
		return nil, errors.Join(err, core.NewError(core.CodeInternal, "the server has no dead letters"))
	}
	before, err := ownMemory(server.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	b.say("dead-letters: retrying")
	began := time.Now()
	var answered, gone time.Duration
	most, err := server.maxMemoryDuring(ctx, func() error {
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
		return nil, err
	}
	report.Add(
		results.Figure{Name: "answered after, ms", Values: []float64{answered.Seconds() * 1e3}},
		results.Figure{Name: "no dead letter left after, s", Values: []float64{gone.Seconds()}},
		results.Figure{Name: "memory before, MB", Values: []float64{before}},
		results.Figure{Name: "memory above that before, at most, MB", Values: []float64{max(0, most-before)}, Target: results.AtMost(100)},
	)
	return report, nil
}

// storeDeadLetters stores the dead letters in the data folder of a server that is not running.
func (b *bench) storeDeadLetters(ctx context.Context, variables []string, dir, study string) error {
	t, err := b.startApp(ctx, dir, "", variables)
	if err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(preparationConcurrency)
	for i := range b.Sizes.DeadLetters {
		group.Go(func() error {
			id := fmt.Sprintf("9a8f1c9e-4f0b-4c57-8f1c-%012d", i)
			return t.app.DeadLetters().Put(groupCtx, core.DeadLetter{
				Repository: direct.RepositoryCode, Organization: study, RecordID: id, Reason: core.ReasonRejected, Attempts: 1,
			})
		})
	}
	err = group.Wait()
	t.client.Close()
	return errors.Join(err, t.app.Stop(context.WithoutCancel(ctx)))
}

func anyDeadLetter(ctx context.Context, c *direct.Client) (bool, error) {
	answer, err := c.Call(ctx, http.MethodGet, "/dead-letters?limit=1", "", nil)
	return gjson.GetBytes(answer, "deadLetters.#").Int() > 0, err
}
