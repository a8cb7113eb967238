package bulk_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index/bulk"
)

var busy = core.Result{
	Outcome: core.OutcomeRetry, Code: core.CodeOverloaded, Type: "es_rejected_execution_exception", Reason: "queue full",
}

// retry returns the Result of an item to be retried.
func retry(code core.Code, reason string) core.Result {
	return core.Result{Outcome: core.OutcomeRetry, Code: code, Reason: reason}
}

// rejected returns the Result of wr when the engine rejected it.
func rejected(wr core.Write, kind, reason string) core.Result {
	r := core.Result{Outcome: core.OutcomeRejected, Type: kind, Reason: reason}
	if wr.Op == core.OpIndex {
		r.Rejected = core.NewDeadLetterDocument(wr.Document)
	}
	return r
}

// intact checks that the index has exactly the bytes of the writes that were reported as indexed.
func intact(t *testing.T, f *fake, writes []core.Write, results []core.Result) {
	t.Helper()
	if len(results) != len(writes) {
		t.Fatalf("%d results of %d writes", len(results), len(writes))
	}
	for i, wr := range writes {
		got, ok := f.stored(wr.ID)
		if want := results[i].Outcome == core.OutcomeIndexed; ok != want {
			t.Errorf("%s: stored %t, result %+v", wr.ID, ok, results[i])
		} else if ok && got.crc != crc32.ChecksumIEEE(wr.Document) {
			t.Errorf("%s: other bytes than were added", wr.ID)
		}
	}
}

// varied returns n documents of different sizes.
func varied(n int) []core.Write {
	all := make([]core.Write, 0, n)
	for i := range n {
		all = append(all, document(fmt.Sprintf("d%d", i), strings.Repeat(string(rune('a'+i%26)), 37*i%501)))
	}
	return all
}

// script answers the first requests with its entries and applies the rest.
func script(f *fake, answers ...func(b core.Batch) ([]core.Result, error)) *fake {
	f.on = func(_ context.Context, n int, b core.Batch) ([]core.Result, error) {
		if n < len(answers) {
			return answers[n](b)
		}
		return f.apply(b), nil
	}
	return f
}

func fails(err error) func(core.Batch) ([]core.Result, error) {
	return func(core.Batch) ([]core.Result, error) { return nil, err }
}

func TestWholeRequestFailures(t *testing.T) {
	t.Parallel()
	short := func(b core.Batch) ([]core.Result, error) { return repeated(indexed, len(b.Items)-1), nil }
	long := func(b core.Batch) ([]core.Result, error) { return repeated(indexed, len(b.Items)+1), nil }
	tests := []struct {
		name   string
		answer func(core.Batch) ([]core.Result, error)
		want   core.Result
		calls  int
		// least and most bound the duration.
		least, most time.Duration
	}{
		{
			name: "overloaded: sent again", answer: fails(core.NewError(core.CodeOverloaded, "429")),
			want: indexed, calls: 2, least: 25 * time.Millisecond, most: 50 * time.Millisecond,
		},
		{
			name:   "overloaded with Retry-After: not before",
			answer: fails(&core.Error{Code: core.CodeOverloaded, Message: "429", RetryAfter: 3 * time.Second}),
			want:   indexed, calls: 2, least: 3 * time.Second, most: 3 * time.Second,
		},
		{
			name:   "overloaded with Retry-After beyond the age of the bodies: retry",
			answer: fails(&core.Error{Code: core.CodeOverloaded, Message: "429", RetryAfter: time.Hour}),
			want:   retry(core.CodeOverloaded, "429"), calls: 1, least: bulk.DefaultMaxBodyAge, most: bulk.DefaultMaxBodyAge,
		},
		{
			name:   "unavailable: retry without resending",
			answer: fails(core.WrapError(core.CodeUnavailable, "writing", errors.New("reset"))),
			want:   retry(core.CodeUnavailable, "writing: reset"), calls: 1,
		},
		{
			name: "an error without a code counts as unavailable", answer: fails(errors.New("odd")),
			want: retry(core.CodeUnavailable, "odd"), calls: 1,
		},
		{
			name: "blocked: retry", answer: fails(core.NewError(core.CodeIndexBlocked, "closed")),
			want: retry(core.CodeIndexBlocked, "closed"), calls: 1,
		},
		{
			name: "too few results: nothing counts as done", answer: short,
			want:  retry(core.CodeUnavailable, "writing a batch: the index returned a different number of results than items"),
			calls: 1,
		},
		{
			name: "too many results: nothing counts as done", answer: long,
			want:  retry(core.CodeUnavailable, "writing a batch: the index returned a different number of results than items"),
			calls: 1,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := script(&fake{}, tt.answer)
				w := open(t, f, bulk.Config{})
				start := time.Now()
				writes := varied(50)
				results := write(t, w, writes...)
				if diff := cmp.Diff(repeated(tt.want, 50), results); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if took := time.Since(start); took < tt.least || took > tt.most {
					t.Errorf("took %s", took)
				}
				if got := len(f.log()); got != tt.calls {
					t.Errorf("%d requests, want %d", got, tt.calls)
				}
				intact(t, f, writes, results)
			})
		})
	}
}

func TestItemFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		writes := varied(40)
		writes[3], writes[30] = removal("r3"), removal("r30")
		blocked := retry(core.CodeIndexBlocked, "read only")
		lost := retry(core.CodeUnavailable, "shard failed")
		script := map[string]core.Result{
			"d5": blocked, "d6": lost, "d7": {Outcome: core.OutcomeStale, CurrentVersion: 77},
			"d8": {Outcome: core.OutcomeMismatch}, "d9": {},
			"r3":  {Outcome: core.OutcomeRejected, Type: "odd", Reason: "why"},
			"d12": {Outcome: core.OutcomeRejected, Type: "document_parsing_exception", Reason: "field [x]"},
		}
		late := []string{"d0", "d2", "d14", "d20", "r30", "d39"}
		f := &fake{}
		f.on = func(_ context.Context, n int, b core.Batch) ([]core.Result, error) {
			return f.applySome(b, func(e entry) (core.Result, bool) {
				if n < 2 && slices.Contains(late, e.id) {
					return busy, false
				}
				r, special := script[e.id]
				return r, !special
			}), nil
		}
		w := open(t, f, bulk.Config{})
		want := repeated(indexed, len(writes))
		want[5], want[6], want[7], want[8] = blocked, lost, script["d7"], script["d8"]
		want[9] = core.Result{Outcome: core.OutcomeRetry, Code: core.CodeUnavailable}
		want[3] = rejected(writes[3], "odd", "why")
		want[12] = rejected(writes[12], "document_parsing_exception", "field [x]")
		want[30] = core.Result{Outcome: core.OutcomeRemoved}
		results := write(t, w, writes...)
		if diff := cmp.Diff(want, results); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		log := f.log()
		if len(log) != 3 || !slices.Equal(log[1].ids, late) || !slices.Equal(log[2].ids, late) {
			t.Errorf("sent again: %v", log[1:])
		}
		for i, wr := range writes {
			got, ok := f.stored(wr.ID)
			switch {
			case want[i].Outcome == core.OutcomeIndexed && (!ok || got.crc != crc32.ChecksumIEEE(wr.Document)):
				t.Errorf("%s: not stored as added", wr.ID)
			case want[i].Outcome == core.OutcomeRemoved && !got.deleted:
				t.Errorf("%s: not removed", wr.ID)
			}
		}
	})
}

func TestTooOld(t *testing.T) {
	t.Parallel()
	t.Run("at the first sending", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := &fake{}
			w := open(t, f, bulk.Config{})
			writes := varied(10)
			for _, i := range []int{0, 4, 9} {
				writes[i].FetchedAt = time.Now().Add(-bulk.DefaultMaxBodyAge)
			}
			writes[5] = removal("r5")
			writes[6].FetchedAt = time.Time{}
			results := write(t, w, writes...)
			for i, r := range results {
				old := i == 0 || i == 4 || i == 9
				if old != (r.Outcome == core.OutcomeRetry && r.Code == core.CodeOverloaded) {
					t.Errorf("%d: %+v", i, r)
				}
			}
			if diff := cmp.Diff([]string{"d1", "d2", "d3", "r5", "d6", "d7", "d8"}, f.log()[0].ids); diff != "" {
				t.Error(diff)
			}
		})
	})
	t.Run("as the engine is told", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var deadlines []time.Duration
			start := time.Now()
			f := &fake{}
			f.on = func(_ context.Context, n int, b core.Batch) ([]core.Result, error) {
				deadlines = append(deadlines, b.Deadline.Sub(start))
				if n == 0 {
					return nil, &core.Error{Code: core.CodeOverloaded, RetryAfter: 3 * time.Second}
				}
				return f.apply(b), nil
			}
			w := open(t, f, bulk.Config{})
			older := document("older", "")
			older.FetchedAt = start.Add(-8 * time.Second)
			write(t, w, document("newer", ""), older, removal("removed"))
			if diff := cmp.Diff([]time.Duration{2 * time.Second, bulk.DefaultMaxBodyAge}, deadlines); diff != "" {
				t.Error(diff)
			}
		})
	})
	t.Run("while being sent again", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			f := &fake{}
			f.on = func(_ context.Context, _ int, b core.Batch) ([]core.Result, error) {
				if !time.Now().Before(b.Deadline) {
					t.Errorf("sent a body %s after its deadline", time.Since(b.Deadline))
					return f.apply(b), nil // otherwise it would be sent again for ever
				}
				return repeated(busy, len(b.Items)), nil
			}
			w := open(t, f, bulk.Config{})
			older := document("older", "")
			older.FetchedAt = start.Add(-8 * time.Second)
			results := write(t, w, older, document("newer", ""), removal("removed"))
			if diff := cmp.Diff(repeated(busy, 3), results); diff != "" {
				t.Errorf("the engine's reason is lost (-want +got):\n%s", diff)
			}
			if took := time.Since(start); took != bulk.DefaultMaxBodyAge {
				t.Errorf("took %s", took)
			}
			if n := len(f.log()); n < 6 || n > 12 {
				t.Errorf("%d requests: the backoff does not grow or grows too fast", n)
			}
		})
	})
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	t.Run("for the engine", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			const limit = 100 << 10
			f := &fake{}
			f.on = func(_ context.Context, _ int, b core.Batch) ([]core.Result, error) {
				if len(b.Payload()) > limit {
					return nil, core.NewError(core.CodeTooLarge, "413")
				}
				return f.apply(b), nil
			}
			w := open(t, f, bulk.Config{})
			writes := varied(400)
			writes[100] = document("huge", strings.Repeat("y", limit))
			for i := 101; i < 400; i++ {
				writes[i] = document(writes[i].ID, strings.Repeat("z", 2000))
			}
			results := write(t, w, writes...)
			intact(t, f, writes, results)
			want := repeated(indexed, len(writes))
			want[100] = rejected(writes[100], bulk.TypeTooLarge, "413")
			if diff := cmp.Diff(want, results); diff != "" {
				t.Error(diff)
			}
			before := len(f.log())
			write(t, w, writes[101:]...)
			for _, c := range f.log()[before:] {
				if c.bytes > limit {
					t.Errorf("still a request of %d bytes", c.bytes)
				}
			}
		})
	})
	t.Run("for the configuration", func(t *testing.T) {
		t.Parallel()
		f := &fake{}
		w := open(t, f, bulk.Config{MaxDocumentBytes: 1000})
		writes := []core.Write{document("a", ""), document("huge", strings.Repeat("y", 1000)), document("b", "")}
		results := write(t, w, writes...)
		intact(t, f, writes, results)
		want := []core.Result{indexed, rejected(writes[1], bulk.TypeTooLarge, "the document is larger than the index accepts"), indexed}
		if diff := cmp.Diff(want, results); diff != "" {
			t.Error(diff)
		}
	})
}

func TestTooDeep(t *testing.T) {
	t.Parallel()
	f := &fake{}
	w := open(t, f, bulk.Config{})
	nested := func(levels int) string {
		return `"` + strings.Repeat(`,"a":{"b":1`, levels-1) + strings.Repeat(`}`, levels-1) + `,"c":"`
	}
	writes := []core.Write{document("a", ""), document("deep", nested(401)), document("b", nested(400))}
	results := write(t, w, writes...)
	want := []core.Result{indexed, rejected(writes[1], bulk.TypeTooDeep, "the document is nested more than 400 levels deep"), indexed}
	want[1].Hint = "nest the record less deeply, then retry"
	if diff := cmp.Diff(want, results); diff != "" {
		t.Error(diff)
	}
}

func TestInvalidRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		first := map[string]bool{}
		f.on = func(_ context.Context, _ int, b core.Batch) ([]core.Result, error) {
			for _, e := range decode(b.Payload()) {
				if e.id == "d17" || e.id == "d90" || e.id == "r91" {
					return nil, core.WrapError(core.CodeInvalid, "the index cannot read the request", errors.New("bad "+e.id))
				}
			}
			// The engine is overloaded in between: bisected items are also moved together.
			return f.applySome(b, func(e entry) (core.Result, bool) {
				again := first[e.id] || crc32.ChecksumIEEE([]byte(e.id))%3 > 0
				first[e.id] = true
				return busy, again
			}), nil
		}
		w := open(t, f, bulk.Config{})
		writes := varied(100)
		writes[91] = removal("r91")
		results := write(t, w, writes...)
		want := repeated(indexed, len(writes))
		for _, i := range []int{17, 90, 91} {
			want[i] = rejected(writes[i], bulk.TypeInvalidRequest, "the index cannot read the request: bad "+writes[i].ID)
		}
		if diff := cmp.Diff(want, results); diff != "" {
			t.Error(diff)
		}
		intact(t, f, writes, results)
	})
}

// TestDelayedDocumentsDoNotBlock checks that a document that the engine delays does not block others.
func TestDelayedDocumentsDoNotBlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.on = func(_ context.Context, _ int, b core.Batch) ([]core.Result, error) {
			time.Sleep(time.Millisecond)
			return f.applySome(b, func(e entry) (core.Result, bool) { return busy, !strings.HasPrefix(e.id, "bad") }), nil
		}
		// Those in backoff must stay within 16 KB, also in the second round, after the first ones have ended.
		w := open(t, f, bulk.Config{BatchBytes: 4 << 10})
		for round := range 2 {
			start := time.Now()
			var bad []*bulk.Ticket
			for i := range 50 {
				bad = append(bad, sealed(add(t, w, document(fmt.Sprintf("bad%d", i), ""))))
				good := varied(20)
				intact(t, f, good, write(t, w, good...))
			}
			if took := time.Since(start); took > time.Second {
				t.Errorf("the good ones of round %d took %s", round, took)
			}
			for _, ticket := range bad {
				if diff := cmp.Diff(repeated(busy, 1), wait(t, ticket)); diff != "" {
					t.Error(diff)
				}
			}
		}
	})
}

// TestNoIndexStarvesAnother checks that an overloaded index does not block writes to another.
func TestNoIndexStarvesAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.on = func(_ context.Context, _ int, b core.Batch) ([]core.Result, error) {
			time.Sleep(time.Millisecond)
			if b.Index == "a" {
				return nil, core.NewError(core.CodeOverloaded, "429")
			}
			return f.apply(b), nil
		}
		w := open(t, f, bulk.Config{BatchBytes: 10 << 10})
		ctx, cancel := context.WithCancel(t.Context())
		flood := w.Ticket()
		flooded := make(chan int)
		go func() {
			n := 0
			for w.Add(ctx, flood, "a", document("x", strings.Repeat("x", 4000))) == nil {
				n++
			}
			flooded <- n
		}()
		time.Sleep(5 * time.Second)
		for i := range 20 {
			start := time.Now()
			ticket := w.Ticket()
			if err := w.Add(t.Context(), ticket, "b", document(fmt.Sprintf("d%d", i), "")); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(repeated(indexed, 1), wait(t, sealed(ticket))); diff != "" {
				t.Error(diff)
			}
			if took := time.Since(start); took > 100*time.Millisecond {
				t.Errorf("the other index waited %s", took)
			}
		}
		cancel()
		n := <-flooded
		// 2 × MaxInFlight batches of 2 documents that wait to be sent, and one that is filling.
		if n > 2*(2*bulk.DefaultMaxInFlight+2) {
			t.Errorf("took %d documents of 4 KB with batches of 10 KB", n)
		}
		if got := len(wait(t, sealed(flood))); got != n {
			t.Errorf("%d results of %d", got, n)
		}
	})
}
