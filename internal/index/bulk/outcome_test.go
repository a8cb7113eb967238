package bulk_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"tutti/internal/core"
	"tutti/internal/index/bulk"
	"tutti/internal/tools/testkit"
)

// logUniform returns n document sizes of total bytes at most: one in twenty log-uniform from 100 B to 1 MB, the others up to 2 KB,
// so that all sizes occur although their mean stays small.
func logUniform(rng *rand.Rand, n, total int) []int {
	sizes := make([]int, n)
	for i := range sizes {
		span := 20.0
		if i%20 == 0 {
			span = 1e4
		}
		size := min(int(100*math.Pow(span, rng.Float64())), max(100, total-100*(n-i)))
		total -= size
		sizes[i] = size
	}
	return sizes
}

// TestOutcomes: what is reported as written was received, byte for byte (RELIABILITY, T1).
func TestOutcomes(t *testing.T) {
	const documents, total = 50_000, 300 << 20
	rng := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 2<<20)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	sizes := logUniform(rng, documents, total)
	for _, adders := range []int{1, 2, 8} {
		t.Run(fmt.Sprintf("adders=%d", adders), func(t *testing.T) {
			f := &fake{}
			w := open(t, f, bulk.Config{})
			var wrong sync.Map
			var group sync.WaitGroup
			for a := range adders {
				group.Go(func() {
					for page := a; page*100 < documents; page += adders {
						if err := writePage(t.Context(), f, w, noise, sizes, page*100); err != nil {
							wrong.Store(page, err)
						}
					}
				})
			}
			group.Wait()
			wrong.Range(func(page, err any) bool {
				t.Errorf("page %v: %v", page, err)
				return true
			})
			if got := len(f.have); got != documents {
				t.Errorf("received %d of %d", got, documents)
			}
		})
	}
}

// writePage writes 100 documents from a buffer that is overwritten after each Add, and compares the results with the contents of f.
func writePage(ctx context.Context, f *fake, w *bulk.Writer, noise []byte, sizes []int, first int) error {
	ticket := w.Ticket()
	var sums [100]uint32
	var buf []byte
	for i := range sums {
		n := first + i
		at := n * 7919 % (len(noise) - 1<<20)
		buf = append(buf[:0], noise[at:at+min(sizes[n], 1<<20)]...)
		sums[i] = crc32.ChecksumIEEE(buf)
		wr := core.Write{ID: fmt.Sprintf("d%d", n), Version: 1, Document: buf, FetchedAt: time.Now()}
		if err := w.Add(ctx, ticket, "a", wr); err != nil {
			return err
		}
		clear(buf)
	}
	ticket.Seal()
	results, err := ticket.Wait(ctx)
	if err != nil {
		return err
	}
	for i, r := range results {
		got, ok := f.stored(fmt.Sprintf("d%d", first+i))
		switch {
		case r.Outcome != core.OutcomeIndexed:
			return fmt.Errorf("document %d: outcome %s", first+i, r.Outcome)
		case !ok:
			return fmt.Errorf("document %d: reported as written, never received", first+i)
		case got.crc != sums[i]:
			return fmt.Errorf("document %d: other bytes received", first+i)
		}
	}
	return nil
}

// faulty fails at random, before or after the index has applied the batch, and checks that the bytes are not changed in the
// meantime.
type faulty struct {
	fake
	rng *rand.Rand
	// torn counts bodies that changed during a request.
	torn int
}

func (f *faulty) dice(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rng.IntN(n)
}

func (f *faulty) answer(_ context.Context, _ int, b core.Batch) ([]core.Result, error) {
	before := crc32.ChecksumIEEE(b.Payload())
	time.Sleep(time.Duration(f.dice(300)) * time.Millisecond)
	if crc32.ChecksumIEEE(b.Payload()) != before {
		f.mu.Lock()
		f.torn++
		f.mu.Unlock()
	}
	switch f.dice(16) {
	case 0, 1, 2:
		return nil, &core.Error{Code: core.CodeOverloaded, Message: "429", RetryAfter: time.Duration(f.dice(3)) * time.Second}
	case 3:
		return nil, core.NewError(core.CodeUnavailable, "reset before")
	case 4:
		f.apply(b)
		return nil, errors.New("reset after")
	case 5:
		return f.apply(b)[1:], nil
	case 6:
		return nil, core.NewError(core.CodeIndexBlocked, "closed")
	case 7, 8:
		return nil, core.NewError([]core.Code{core.CodeTooLarge, core.CodeInvalid}[f.dice(2)], "split me")
	}
	rolls := make([]int, len(b.Items))
	for i := range rolls {
		rolls[i] = f.dice(12)
	}
	i := -1
	return f.applySome(b, func(entry) (core.Result, bool) {
		i++
		switch rolls[i] {
		case 0, 1:
			return busy, false
		case 2:
			return retry(core.CodeIndexBlocked, "closed"), false
		case 3:
			return core.Result{Outcome: core.OutcomeRejected, Type: "document_parsing_exception"}, false
		default:
			return core.Result{}, true
		}
	}), nil
}

// TestEveryWriteHasOneResult checks random mixtures of failures: each Add gets exactly one Result, and none is reported as written
// when the index does not have its bytes.
func TestEveryWriteHasOneResult(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		adders := rapid.IntRange(1, 4).Draw(rt, "adders")
		tickets := rapid.IntRange(1, 6).Draw(rt, "tickets")
		perTicket := rapid.IntRange(1, 60).Draw(rt, "writes per ticket")
		cfg := bulk.Config{
			BatchBytes:  rapid.IntRange(200, 20_000).Draw(rt, "batch bytes"),
			BatchCount:  rapid.IntRange(1, 100).Draw(rt, "batch count"),
			MaxInFlight: rapid.IntRange(1, 4).Draw(rt, "in flight"),
		}
		closeEarly := rapid.Bool().Draw(rt, "close early")
		var faults []string
		synctest.Test(t, func(t *testing.T) {
			faults = mix(t, seed, adders, tickets, perTicket, cfg, closeEarly)
		})
		if len(faults) > 0 {
			rt.Fatalf("%d faults, such as %s", len(faults), faults[0])
		}
	})
}

// mix writes at random to a faulty index and returns what was reported wrongly.
func mix(t *testing.T, seed uint64, adders, tickets, perTicket int, cfg bulk.Config, closeEarly bool) []string {
	f := &faulty{rng: rand.New(rand.NewPCG(seed, 1))}
	f.on = f.answer
	w, err := bulk.New(f, cfg)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var faults []string
	report := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		faults = append(faults, fmt.Sprintf(format, args...))
	}
	var group sync.WaitGroup
	for a := range adders {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(a)+2))
			for n := range tickets {
				oneTicket(t.Context(), f, w, rng, fmt.Sprintf("%d-%d", a, n), perTicket, report)
			}
		})
	}
	if closeEarly {
		time.Sleep(time.Second)
	} else {
		group.Wait()
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.HangLimit)
	defer cancel()
	if err := w.Close(ctx); err != nil {
		report("closing: %v", err)
	}
	group.Wait()
	if f.torn > 0 {
		report("%d bodies changed while they were being sent", f.torn)
	}
	if n := w.Indexes(); n != 0 {
		report("%d indexes left", n)
	}
	return faults
}

// oneTicket writes one ticket and checks its results.
func oneTicket(
	ctx context.Context, f *faulty, w *bulk.Writer, rng *rand.Rand, name string, n int, report func(string, ...any),
) {
	ticket := w.Ticket()
	var writes []core.Write
	for i := range n {
		wr := document(fmt.Sprintf("%s-%d", name, i), string(make([]byte, rng.IntN(300))))
		if rng.IntN(8) == 0 {
			wr = removal(wr.ID)
		}
		if err := w.Add(ctx, ticket, []string{"a", "b"}[rng.IntN(2)], wr); err != nil {
			if !errors.Is(err, bulk.ErrClosed) {
				report("adding: %v", err)
			}
			break
		}
		writes = append(writes, wr)
		if rng.IntN(10) == 0 {
			time.Sleep(time.Duration(rng.IntN(50)) * time.Millisecond)
		}
	}
	ticket.Seal()
	results, err := ticket.Wait(ctx)
	if err != nil || len(results) != len(writes) {
		report("%d results of %d: %v", len(results), len(writes), err)
		return
	}
	for i, wr := range writes {
		got, ok := f.stored(wr.ID)
		switch r := results[i]; r.Outcome {
		case core.OutcomeIndexed:
			if !ok || got.deleted || got.crc != crc32.ChecksumIEEE(wr.Document) {
				report("%s: said to be indexed", wr.ID)
			}
		case core.OutcomeRemoved:
			if !got.deleted {
				report("%s: said to be removed", wr.ID)
			}
		case core.OutcomeRejected:
			if ok || (r.Rejected == nil) != (wr.Op == core.OpDelete) || r.Rejected != nil && string(r.Rejected.Bytes) != string(wr.Document) {
				report("%s: rejected with %v, stored %t", wr.ID, r.Rejected, ok)
			}
		case core.OutcomeRetry:
			if r.Code == "" || ok && r.Code != core.CodeUnavailable {
				report("%s: retry with code %q, stored %t", wr.ID, r.Code, ok)
			}
		default:
			report("%s: outcome %s", wr.ID, r.Outcome)
		}
	}
}
