package app

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"

	"tutti/internal/base/cache"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/index/mapping"
	"tutti/internal/upstream"
)

// slowDeclarer takes a while for each answer. Only one of its calls runs at a time.
type slowDeclarer struct {
	upstream.Declarer

	takes             time.Duration
	revisions, listed int
}

func (s *slowDeclarer) Declared(context.Context) (*mapping.Types, string, error) {
	time.Sleep(s.takes)
	s.listed++
	return nil, "nothing", nil
}

func (s *slowDeclarer) Revision(context.Context) (string, error) {
	time.Sleep(s.takes)
	s.revisions++
	return "1", nil
}

type noIndex struct{}

func (noIndex) Declare(string, *mapping.Types) {}

// TestDeclarationIsShared: records that are fetched at the same time share one question to the repository whether its declarations have
// changed, one that is fetched later asks anew, and a caller leaves with its context while another one asks.
func TestDeclarationIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &slowDeclarer{takes: time.Second}
		d := &declaration{
			of: &declarations{index: noIndex{}, log: slog.New(slog.DiscardHandler)}, rc: config.Repository{Code: "r"}, source: source,
			jobs: cache.NewLRU[string, struct{}](1), reading: semaphore.NewWeighted(1),
		}
		read := func(ctx context.Context) {
			if err := d.Read(ctx, "", time.Time{}); err != nil {
				t.Error(err)
			}
		}
		read(t.Context())
		if source.listed != 1 {
			t.Errorf("the declarations were read %d times", source.listed)
		}
		time.Sleep(time.Second)
		source.revisions = 0
		var all sync.WaitGroup
		for range 32 {
			all.Go(func() { read(t.Context()) })
		}
		all.Wait()
		if source.revisions != 2 { // of the first caller, and one that begins after the others have come
			t.Errorf("32 records at once asked %d times", source.revisions)
		}
		time.Sleep(time.Second)
		read(t.Context())
		if source.revisions != 3 || source.listed != 1 {
			t.Errorf("%d and %d", source.revisions, source.listed)
		}
		time.Sleep(time.Second)
		source.takes = time.Hour
		all.Go(func() { read(t.Context()) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := d.Read(ctx, "", time.Time{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller whose time is over got %v", err)
		}
		all.Wait()
	})
}

// namingDeclarer declares what its records name, from the second reading on, unless never is set.
type namingDeclarer struct {
	upstream.Declarer

	never bool
	read  atomic.Int32
}

func (n *namingDeclarer) Declared(context.Context) (*mapping.Types, string, error) {
	n.read.Add(1)
	return nil, "", nil
}

func (n *namingDeclarer) Declares(core.Record) bool { return !n.never && n.read.Load() > 1 }

// TestReadingForRecords: records of an unknown type make the declarations be read once, and at most once a minute while they stay unknown.
func TestReadingForRecords(t *testing.T) {
	for _, never := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			source := &namingDeclarer{never: never}
			d := &declaration{
				of: &declarations{index: noIndex{}, log: slog.New(slog.DiscardHandler)}, rc: config.Repository{Code: "r"}, source: source,
				jobs: cache.NewLRU[string, struct{}](1), reading: semaphore.NewWeighted(1),
			}
			if err := d.Read(t.Context(), "", time.Time{}); err != nil {
				t.Fatal(err)
			}
			fetch := func(want int32) {
				t.Helper()
				var all sync.WaitGroup
				for range 32 {
					all.Go(func() {
						if err := d.ReadFor(t.Context(), core.Record{}); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				if read := source.read.Load(); read != want {
					t.Errorf("never %t: read %d times instead of %d", never, read, want)
				}
			}
			fetch(2)
			time.Sleep(readForInterval - 1)
			fetch(2)
			time.Sleep(1 * time.Nanosecond)
			if never {
				fetch(3)
			} else {
				fetch(2)
			}
		})
	}
}
