package loop_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tutti/consumers/loop"
	"tutti/internal/core"
)

// slowQueue stores a Request after a second. It refuses one for ever, and does not answer those whose id begins with 3 the first time.
type slowQueue struct {
	loop.Requests
	refused string

	mu     sync.Mutex
	stored []string
	failed map[string]bool
}

// PublishUnlessRemovalPending implements loop.Requests.
func (q *slowQueue) PublishUnlessRemovalPending(_ context.Context, r core.Request) error {
	time.Sleep(time.Second)
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case r.RecordID == q.refused:
		return core.NewError(core.CodeInvalid, "refused")
	case strings.HasPrefix(r.RecordID, "3") && !q.failed[r.RecordID]:
		q.failed[r.RecordID] = true
		return core.NewError(core.CodeUnavailable, "failed")
	}
	q.stored = append(q.stored, r.RecordID)
	return nil
}

// TestPublishEach: Requests are published at once; those that fail are tried again together, with one line in the log, and one that is refused is
// the error and does not concern the others.
func TestPublishEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &slowQueue{refused: "7", failed: map[string]bool{}}
		var log bytes.Buffer
		l := loop.New(loop.NewProcess(time.Minute), q, nil, loop.Config{Logger: slog.New(slog.NewTextHandler(&log, nil)), RetryBase: time.Second, RetryMax: time.Second})
		l.Pause.Clear()
		log.Reset()
		began := time.Now()
		var told []string
		err := l.PublishEach(t.Context(), func(yield func(core.Request) bool) {
			for i := 0; i < 100 && yield(core.Request{RecordID: strconv.Itoa(i)}); i++ {
			}
		}, func(r core.Request) { told = append(told, r.RecordID) })
		if took := time.Since(began); core.CodeOf(err) != core.CodeInvalid || took > 5*time.Second {
			t.Errorf("%v after %s", err, took)
		}
		slices.Sort(told)
		slices.Sort(q.stored)
		if !slices.Equal(told, q.stored) || len(told) != 99 || slices.Contains(told, "7") || len(q.failed) != 11 {
			t.Errorf("stored %q, told %q, failed %v", q.stored, told, q.failed)
		}
		if n := strings.Count(log.String(), "\n"); n != 1 {
			t.Errorf("%d lines in the log:\n%s", n, &log)
		}
	})
}
