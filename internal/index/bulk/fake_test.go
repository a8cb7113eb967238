package bulk_test

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tutti/internal/core"
	"tutti/internal/index/bulk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// entry is one decoded Write of a payload.
type entry struct {
	op      core.WriteOp
	id      string
	version core.Version
	doc     []byte
}

// encode is the fakes' encoding: op, length of id, id, version, length of document, document.
func encode(dst []byte, w core.Write) ([]byte, int, int) {
	dst = append(dst, byte(w.Op))
	dst = binary.AppendUvarint(dst, uint64(len(w.ID)))
	dst = append(dst, w.ID...)
	dst = binary.AppendVarint(dst, int64(w.Version))
	if w.Op == core.OpDelete {
		return dst, len(dst), len(dst)
	}
	dst = binary.AppendUvarint(dst, uint64(len(w.Document)))
	start := len(dst)
	dst = append(dst, w.Document...)
	return dst, start, len(dst)
}

// decode decodes a payload. The documents share its memory.
func decode(p []byte) []entry {
	var all []entry
	for len(p) > 0 {
		e := entry{op: core.WriteOp(p[0])}
		p = p[1:]
		n, k := binary.Uvarint(p)
		e.id, p = string(p[k:k+int(n)]), p[k+int(n):]
		v, k := binary.Varint(p)
		e.version, p = core.Version(v), p[k:]
		if e.op == core.OpIndex {
			n, k = binary.Uvarint(p)
			e.doc, p = p[k:k+int(n)], p[k+int(n):]
		}
		all = append(all, e)
	}
	return all
}

// stored is the fake index' state of a document.
type stored struct {
	version core.Version
	crc     uint32
	deleted bool
}

// call is one request to the fake index.
type call struct {
	at    time.Time
	index string
	ids   []string
	bytes int
}

// fake is an index in memory. on, if set, handles the n-th request (from 0) instead of the index; it may call apply.
type fake struct {
	on func(ctx context.Context, n int, b core.Batch) ([]core.Result, error)

	mu          sync.Mutex
	calls       []call
	have        map[string]stored
	now, atOnce int
}

func (f *fake) Encode(dst []byte, w core.Write) ([]byte, int, int) { return encode(dst, w) }

func (f *fake) Write(ctx context.Context, b core.Batch) ([]core.Result, error) {
	f.mu.Lock()
	n := len(f.calls)
	ids := make([]string, 0, len(b.Items))
	for _, e := range decode(b.Payload()) {
		ids = append(ids, e.id)
	}
	f.calls = append(f.calls, call{at: time.Now(), index: b.Index, ids: ids, bytes: len(b.Payload())})
	f.now++
	f.atOnce = max(f.atOnce, f.now)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.now--
		f.mu.Unlock()
	}()
	if f.on != nil {
		return f.on(ctx, n, b)
	}
	return f.apply(b), nil
}

// apply applies b like an index with external_gte versions.
func (f *fake) apply(b core.Batch) []core.Result {
	return f.applySome(b, func(entry) (core.Result, bool) { return core.Result{}, true })
}

// applySome is apply for the entries that take accepts; the others get take's Result.
func (f *fake) applySome(b core.Batch, take func(entry) (core.Result, bool)) []core.Result {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.have == nil {
		f.have = map[string]stored{}
	}
	results := make([]core.Result, 0, len(b.Items))
	for _, e := range decode(b.Payload()) {
		r, ok := take(e)
		switch old, known := f.have[e.id]; {
		case !ok:
		case known && old.version > e.version:
			r = core.Result{Outcome: core.OutcomeStale, CurrentVersion: old.version}
		case e.op == core.OpDelete:
			f.have[e.id] = stored{version: e.version, deleted: true}
			r = core.Result{Outcome: core.OutcomeRemoved}
		default:
			f.have[e.id] = stored{version: e.version, crc: crc32.ChecksumIEEE(e.doc)}
			r = core.Result{Outcome: core.OutcomeIndexed}
		}
		results = append(results, r)
	}
	return results
}

func (f *fake) log() []call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

func (f *fake) sizes() []int {
	var sizes []int
	for _, c := range f.log() {
		sizes = append(sizes, len(c.ids))
	}
	return sizes
}

func (f *fake) stored(id string) (stored, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.have[id]
	return s, ok
}

// open returns a Writer that is closed when the test ends.
func open(t testing.TB, e bulk.Engine, cfg bulk.Config) *bulk.Writer {
	t.Helper()
	w, err := bulk.New(e, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(context.Background()); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return w
}

func document(id, text string) core.Write {
	return core.Write{ID: id, Version: 1, Document: []byte(`{"id":"` + id + `","text":"` + text + `"}`), FetchedAt: time.Now()}
}

func removal(id string) core.Write { return core.Write{Op: core.OpDelete, ID: id, Version: 1} }

// add adds writes to a new ticket on index a, without sealing it.
func add(t testing.TB, w *bulk.Writer, writes ...core.Write) *bulk.Ticket {
	t.Helper()
	ticket := w.Ticket()
	for _, wr := range writes {
		if err := w.Add(t.Context(), ticket, "a", wr); err != nil {
			t.Fatalf("adding %s: %v", wr.ID, err)
		}
	}
	return ticket
}

// write writes to index a and waits for the results.
func write(t testing.TB, w *bulk.Writer, writes ...core.Write) []core.Result {
	t.Helper()
	ticket := add(t, w, writes...)
	ticket.Seal()
	return wait(t, ticket)
}

func wait(t testing.TB, ticket *bulk.Ticket) []core.Result {
	t.Helper()
	results, err := ticket.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return results
}

var indexed = core.Result{Outcome: core.OutcomeIndexed}

// repeated returns n times r.
func repeated(r core.Result, n int) []core.Result { return slices.Repeat([]core.Result{r}, n) }
