package display_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"tutti/cmd/tutti/internal/client"
	"tutti/cmd/tutti/internal/client/display"
	"tutti/internal/base/printable"
	"tutti/internal/core"
)

// player sends events of a job with pauses; in a synctest bubble the pauses take no time.
type player struct {
	events []client.Event
	pause  time.Duration
	job    client.Job
	err    error
}

func (p player) WatchJob(_ context.Context, _ string, each func(client.Event) error) (client.Job, error) {
	for _, e := range p.events {
		if err := each(e); err != nil {
			return client.Job{}, err
		}
		time.Sleep(p.pause)
	}
	return p.job, p.err
}

type screen struct {
	columns, rows int
	colour        bool
}

func (s screen) Size() (columns, rows int) { return s.columns, s.rows }
func (s screen) Colour() bool              { return s.colour }

func job(state core.JobState, fetched, expected int64, rate float64, eta int64) client.Event {
	j := client.Job{
		ID: "j1", Repository: "song.collab", IndexName: "analyses", State: state, RatePerSecond: rate,
		Totals: core.Totals{Fetched: fetched, Expected: expected},
	}
	if eta > 0 {
		j.ETASeconds = &eta
	}
	return client.Event{Job: &j}
}

func row(name string, state core.JobState, fetched, expected int64) client.Event {
	return client.Event{Organization: &client.Organization{
		Organization: name, State: state, Totals: core.Totals{Fetched: fetched, Expected: expected, Indexed: fetched},
	}}
}

func faulty(name string, state core.JobState, code, message string) client.Event {
	e := row(name, state, 0, 0)
	e.Organization.Error = &core.JobError{Code: code, Message: message}
	return e
}

func lost() client.Event {
	return client.Event{Lost: core.WrapError(core.CodeUnavailable, "tutti at http://t does not answer", errors.New("x"))}
}

// TestWatchLines: without a screen there is a line for each change of state and periodically one of the totals.
func TestWatchLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		events := []client.Event{
			job(core.JobQueued, 0, 0, 0, 0),
			row("S1", core.JobQueued, 0, 0), row("S2\x1b[2J", core.JobRunning, 0, 0), job(core.JobRunning, 0, 0, 0, 0),
			row("S1", core.JobRunning, 0, 2000), row("S1", core.JobRunning, 1500, 2000), job(core.JobRunning, 1500, 2000, 250.4, 2),
			lost(), lost(),
			row("S1", core.JobSucceeded, 2000, 2000), faulty("S2\x1b[2J", core.JobFailed, "unavailable", "no answer"),
			job(core.JobPartial, 2000, 2000, 250, 0),
		}
		ended := client.Job{ID: "j1", State: core.JobPartial}
		got, err := display.Watch(t.Context(), player{events: events, pause: 900 * time.Millisecond, job: ended}, "j1", &out, display.ProgressConfig{})
		if err != nil || got.State != core.JobPartial {
			t.Fatalf("%+v, %v", got, err)
		}
		want := `job j1, song.collab to analyses: queued
S2\x1b[2J: running
job j1, song.collab to analyses: running
S1: running
0 fetched, 0 of 2 organizations ended
tutti at http://t does not answer, retrying
tutti answers again
S1: succeeded, 2,000 of 2,000 fetched, 2,000 indexed
S2\x1b[2J: failed, 0 fetched, unavailable: no answer
job j1, song.collab to analyses: partial
`
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestWatchPaused: a paused job is shown with its reason, and when it continues.
func TestWatchPaused(t *testing.T) {
	t.Parallel()
	paused := job(core.JobRunning, 0, 0, 0, 0)
	paused.Job.Paused = "the mapping is wrong"
	events := []client.Event{paused, paused, job(core.JobRunning, 0, 0, 0, 0), paused}
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			screen display.Screen
			want   string
		}{
			{nil, "job j1, song.collab to analyses: running\npaused: the mapping is wrong\nno longer paused\npaused: the mapping is wrong\n"},
			{screen{columns: 60, rows: 24}, "\x1b[?7l\r" +
				"job j1, song.collab to analyses: running\x1b[K\n" +
				"  total  [····················]  0\x1b[K\n" +
				"paused: the mapping is wrong\x1b[K\n\x1b[J\x1b[?7h"},
		} {
			var out bytes.Buffer
			if _, err := display.Watch(t.Context(), player{events: events}, "j1", &out, display.ProgressConfig{Screen: tt.screen}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Error(diff)
			}
		}
	})
}

// TestWatchDraws: each view is drawn over the previous one, and the last one stays.
func TestWatchDraws(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		events := []client.Event{
			job(core.JobRunning, 0, 0, 0, 0), row("S1", core.JobRunning, 1, 2), row("S1", core.JobSucceeded, 2, 2),
			job(core.JobSucceeded, 2, 2, 4, 0),
		}
		cfg := display.ProgressConfig{Screen: screen{columns: 60, rows: 24}}
		if _, err := display.Watch(t.Context(), player{events: events, pause: 45 * time.Millisecond}, "j1", &out, cfg); err != nil {
			t.Fatal(err)
		}
		// Events at 0, 45, 90 and 135 ms, views at 100 ms and at the end.
		want := "\x1b[?7l\r" +
			"job j1, song.collab to analyses: running\x1b[K\n" +
			"  S1     [██████████████████]  2/2  succeeded\x1b[K\n" +
			"  total  [··················]    0\x1b[K\n\x1b[J\x1b[?7h" +
			"\x1b[?7l\r\x1b[3A" +
			"job j1, song.collab to analyses: succeeded\x1b[K\n" +
			"  S1     [██████████████████]  2/2  succeeded\x1b[K\n" +
			"  total  [██████████████████]  2/2  4.0/s\x1b[K\n\x1b[J\x1b[?7h"
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Error(diff)
		}
	})
}

// rendered returns the last view drawn for events.
func rendered(t *testing.T, s screen, events ...client.Event) []string {
	t.Helper()
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		if _, err := display.Watch(t.Context(), player{events: events}, "j1", &out, display.ProgressConfig{Screen: s}); err != nil {
			t.Fatal(err)
		}
	})
	text := strings.TrimSuffix(strings.TrimPrefix(out.String(), "\x1b[?7l\r"), "\x1b[J\x1b[?7h")
	return strings.Split(strings.TrimSuffix(strings.ReplaceAll(text, "\x1b[K", ""), "\n"), "\n")
}

func TestRender(t *testing.T) {
	t.Parallel()
	many := []client.Event{job(core.JobRunning, 10, 100, 12, 90)}
	for i := range 30 {
		state := core.JobQueued
		switch {
		case i%10 == 7:
			state = core.JobRunning
		case i == 5:
			state = core.JobFailed
		case i < 5:
			state = core.JobSucceeded
		}
		many = append(many, row(fmt.Sprintf("S%02d", i), state, 0, 0))
	}
	wide := job(core.JobRunning, 1500, 2000, 250, 2)
	for name, tt := range map[string]struct {
		screen screen
		events []client.Event
		want   []string
	}{
		"by name": {
			screen{100, 24, false},
			[]client.Event{
				row("国立がん研究センター", core.JobRunning, 500, 1000), row("A", core.JobQueued, 0, 0),
				faulty("B\n", core.JobPartial, "prune_guard", "too many would go"), row("C", core.JobSucceeded, 0, 0), wide,
			},
			[]string{
				"job j1, song.collab to analyses: running",
				"  A                     [···················]            0  queued",
				`  B\n                   [···················]            0  partial, prune_guard: too many would go`,
				"  C                     [███████████████████]            0  succeeded",
				"  国立がん研究センター  [█████████··········]    500/1,000  running",
				"  total                 [██████████████·····]  1,500/2,000  250/s, 2s left, 2 of 4 ended",
			},
		},
		"more rows than the screen": {
			screen{80, 9, false},
			many,
			[]string{
				"job j1, song.collab to analyses: running",
				"  S07    [···························]       0  running",
				"  S17    [···························]       0  running",
				"  S27    [···························]       0  running",
				"  S05    [···························]       0  failed",
				"  S06    [···························]       0  queued",
				"  and 25 more: 20 queued, 5 succeeded",
				"  total  [██·························]  10/100  12/s, 1m30s left, 6 of 30 ended",
			},
		},
		"one row": {
			screen{30, 1, false},
			many,
			[]string{
				"job j1, song.collab to analys…", "  and 30 more: 21 queued, 3 r…", "  total  10/100  12/s",
			},
		},
		"coloured": {
			screen{60, 24, true},
			[]client.Event{row("S1", core.JobSucceeded, 1, 1), faulty("S2", core.JobFailed, "x", "y"), wide},
			[]string{
				"job j1, song.collab to analyses: running",
				"  S1     [██████████]          1/1  \x1b[32msucceeded\x1b[0m",
				"  S2     [··········]            0  \x1b[31mfailed, x: y\x1b[0m",
				"  total  [███████···]  1,500/2,000  250/s, 2s left",
			},
		},
		"invalid numbers and states": {
			screen{60, 24, false},
			[]client.Event{row("S1", core.JobRunning, -5, 10), row("S2", "later", 50, 10), wide},
			[]string{
				"job j1, song.collab to analyses: running",
				"  S1     [··········]        -5/10  running",
				"  S2     [██████████]        50/10  later",
				"  total  [███████···]  1,500/2,000  250/s, 2s left",
			},
		},
		"lost": {
			screen{40, 5, false},
			[]client.Event{row("S1", core.JobRunning, 1, 2), row("S2", core.JobRunning, 1, 2), wide, lost()},
			[]string{
				"job j1, song.collab to analyses: running", "  and 2 more: 2 running",
				"  total  1,500/2,000  250/s, 2s left", "tutti at http://t does not answer, retr…",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := rendered(t, tt.screen, tt.events...)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			for _, line := range got {
				plain := strings.NewReplacer("\x1b[32m", "", "\x1b[31m", "", "\x1b[0m", "").Replace(line)
				if printable.Width(plain) > tt.screen.columns {
					t.Errorf("%q is wider than %d", line, tt.screen.columns)
				}
			}
		})
	}
}

// TestRenderTruncatesNoNumber: a number is complete or omitted at any width; the counts are shown whenever they fit.
func TestRenderTruncatesNoNumber(t *testing.T) {
	t.Parallel()
	waiting := job(core.JobRunning, 1_234_567, 98_765_432, 4321, 5400)
	waiting.Job.ID, waiting.Job.Paused = "0199b2a7-3c2f", "the index answered 503 for 1m30s, 17 times in 2,048 calls"
	events := []client.Event{
		waiting, row("a very long name of an organization", core.JobRunning, 1_000_000, 98_000_000),
		faulty("b", core.JobFailed, "unavailable", "page 12 (rows from 12,000) could not be read: status 502"),
		{Lost: core.NewError(core.CodeUnavailable, "tutti at http://192.0.2.15:8080 does not answer")},
	}
	for i := range 47 {
		events = append(events[:len(events)-1], row(strings.Repeat("c", i+1), core.JobQueued, 0, 0), events[len(events)-1])
	}
	words := func(lines []string) []string {
		return strings.FieldsFunc(strings.Join(lines, "\n"), func(c rune) bool { return unicode.IsSpace(c) || c == '…' })
	}
	const rows = 9
	whole := map[string]bool{}
	for _, word := range words(rendered(t, screen{1000, rows, false}, events...)) {
		whole[word] = true
	}
	for columns := range 200 {
		lines := rendered(t, screen{columns, rows, false}, events...)
		for _, word := range words(lines) {
			if strings.ContainsAny(word, "0123456789") && !whole[word] && !whole[word+","] {
				t.Errorf("%d columns: %q is cut: %q", columns, word, lines)
			}
		}
		for _, line := range lines {
			if printable.Width(line) > columns {
				t.Errorf("%d columns: %q is wider", columns, line)
			}
		}
		for _, counts := range []string{"1,234,567/98,765,432", "1,000,000/98,000,000"} {
			if columns >= len(counts) && !strings.Contains(strings.Join(lines, "\n"), counts) {
				t.Errorf("%d columns: no %s: %q", columns, counts, lines)
			}
		}
	}
}

// TestWatchFails: errors of the watcher and of the output reach the caller.
func TestWatchFails(t *testing.T) {
	t.Parallel()
	events := []client.Event{job(core.JobQueued, 0, 0, 0, 0), row("S1", core.JobRunning, 0, 0)}
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		player player
		screen display.Screen
		full   bool
		want   error
	}{
		"watcher":                          {player{events: events, err: broken}, nil, false, broken},
		"output of lines":                  {player{events: events}, nil, true, errFull},
		"output of a view":                 {player{events: events, pause: time.Second}, screen{80, 24, false}, true, errFull},
		"output of the last view":          {player{events: events}, screen{80, 24, false}, true, errFull},
		"watcher before any event":         {player{err: broken}, screen{80, 24, false}, true, broken},
		"connection lost before any event": {player{events: []client.Event{lost()}, err: broken}, screen{80, 24, false}, true, broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var err error
				if tt.full {
					_, err = display.Watch(t.Context(), tt.player, "j1", failingWriter{}, display.ProgressConfig{Screen: tt.screen})
				} else {
					_, err = display.Watch(t.Context(), tt.player, "j1", &bytes.Buffer{}, display.ProgressConfig{Screen: tt.screen})
				}
				if !errors.Is(err, tt.want) {
					t.Errorf("error %v, want %v", err, tt.want)
				}
			})
		})
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	started := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	ended := started.Add(90 * time.Second)
	j := client.Job{
		ID: "j1", Repository: "song.collab", Organization: "S1", IndexName: "analyses", State: core.JobPartial,
		StartedAt: &started, EndedAt: &ended, Error: &core.JobError{Code: "prune_guard", Message: "S1: too many"}, Note: "all records were read once more",
		Totals: core.Totals{Expected: 2000, Fetched: 2000, Indexed: 1990, Stale: 1, Removed: 2, Rejected: 10, Excluded: 4, Retried: 3},
		Organizations: []client.Organization{
			{Organization: "S0", State: core.JobSucceeded},
			{Organization: "S1", State: core.JobPartial, Error: &core.JobError{Code: "prune_guard", Message: "too many"}},
		},
	}
	for i := range 21 {
		j.Organizations = append(j.Organizations, client.Organization{
			Organization: fmt.Sprint("T", i), State: core.JobFailed, Error: &core.JobError{Code: "x", Message: "y"},
		})
	}
	var out bytes.Buffer
	if err := display.Summary(&out, j); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	want := []string{
		"partial: job j1, song.collab / S1 to analyses in 1m30s",
		"  2,000 of 2,000 fetched, 1,990 indexed, 1 stale, 2 removed, 10 rejected, 4 excluded, 3 retried",
		"  prune_guard: S1: too many", "  all records were read once more", "  S1: partial, prune_guard: too many", "  T0: failed, x: y",
	}
	if diff := cmp.Diff(want, lines[:6]); diff != "" {
		t.Error(diff)
	}
	want = []string{
		"  T18: failed, x: y", "  and 2 more organizations: tutti jobs show j1",
		"  rejected records: tutti dead-letters list --repository song.collab", "",
	}
	if diff := cmp.Diff(want, lines[len(lines)-4:]); diff != "" {
		t.Error(diff)
	}
	if err := display.Summary(failingWriter{}, j); !errors.Is(err, errFull) {
		t.Errorf("error %v", err)
	}
}
