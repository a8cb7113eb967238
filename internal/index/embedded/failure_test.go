package embedded_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"reflect"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
)

// What a spoilt disk does to the file.
const (
	diskWhole = iota
	// diskDead takes nothing, as from when all transactions have come about that it allows.
	diskDead
	// diskUnsure takes everything, and then says of what ends a transaction that it did not.
	diskUnsure
)

// disk is between an index and its file.
type disk struct {
	state atomic.Int32
	// allowed is how many transactions come about before it is dead, refused how many writes it has refused.
	allowed, refused atomic.Int32
}

var errDisk = errors.New("the disk is spoilt")

// spoilable puts a disk below an index to which nobody writes.
func spoilable(t *testing.T, x *embedded.Index) *disk {
	t.Helper()
	db := embedded.Database(x)
	field := reflect.ValueOf(db).Elem().FieldByName("ops")
	if !field.IsValid() || !field.FieldByName("writeAt").IsValid() {
		t.Fatal("bbolt writes in another way than it did")
	}
	field = field.FieldByName("writeAt")
	write := reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Interface().(*func(b []byte, off int64) (int, error))
	whole, d := *write, &disk{}
	*write = func(b []byte, off int64) (int, error) {
		ends := off < 2*int64(os.Getpagesize())
		if ends && d.allowed.Load() > 0 && d.allowed.Add(-1) == 0 {
			defer d.state.Store(diskDead)
		}
		switch d.state.Load() {
		case diskDead:
			d.refused.Add(1)
			return 0, errDisk
		case diskUnsure:
			n, err := whole(b, off)
			if ends && err == nil {
				err = errDisk
			}
			return n, err
		default:
			return whole(b, off)
		}
	}
	return d
}

// TestFailedTransaction holds that searches give what is in the file, also when nobody knows at first whether a transaction is.
func TestFailedTransaction(t *testing.T) {
	for name, test := range map[string]struct {
		state int32
		want  map[string]string
	}{
		"is not in the file": {diskDead, map[string]string{"a": `{"n":1}`, "b": `{"n":1}`}},
		"is in the file":     {diskUnsure, map[string]string{"a": `{"n":2}`, "c": `{"n":2}`}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := embedded.Config{Dir: t.TempDir()}
			x := open(t, cfg)
			ensure(t, x, index.Spec{Alias: "a"})
			write(t, x, "a", put("a", 1, `{"n":1}`), put("b", 1, `{"n":1}`))
			d := spoilable(t, x)
			d.state.Store(test.state)
			b := batchOf(x, "a", put("a", 2, `{"n":2}`), core.Write{Op: core.OpDelete, ID: "b", Version: 2}, put("c", 2, `{"n":2}`))
			if _, err := x.Write(t.Context(), b); core.CodeOf(err) != core.CodeUnavailable || core.MessageOf(err) != "the index could not be written" || !errors.Is(err, errDisk) {
				t.Fatalf("a write to a spoilt disk gave %v", err)
			}
			d.state.Store(diskWhole)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // reached only where the sources are of another moment
			defer cancel()
			if _, err := x.Search(ctx, "a", []index.SearchRequest{{Hits: &index.HitsRequest{Size: 5}}}); err != nil {
				t.Fatal(err)
			}
			holds(t, x, "a", test.want)
			write(t, x, "a", put("d", 3, `{"n":3}`))
			want := maps.Clone(test.want)
			want["d"] = `{"n":3}`
			holds(t, x, "a", want)
			holds(t, reopened(t, x, cfg), "a", want)
		})
	}
}

// impatient is a context that ends when it was asked often whether it has.
type impatient struct {
	context.Context //nolint:containedctx // it is one itself
	asked           int
}

// Err counts.
func (i *impatient) Err() error {
	if i.asked++; i.asked > 1_000_000 {
		return context.Canceled
	}
	return i.Context.Err()
}

// TestSearchOfNoMoment holds that a search for whose documents the file has no moment ends with its context, and does not spin
// until then.
func TestSearchOfNoMoment(t *testing.T) {
	x := open(t, embedded.Config{})
	ensure(t, x, index.Spec{Alias: "a"})
	write(t, x, "a", put("a", 1, `{"n":1}`))
	embedded.Lose(x, "a")
	deadline, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	ctx := &impatient{Context: deadline}
	_, err := x.Search(ctx, "a", []index.SearchRequest{{Hits: &index.HitsRequest{Size: 1}}})
	if core.CodeOf(err) != core.CodeUnavailable || core.MessageOf(err) != "searching the index was given up" || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the search gave %v", err)
	}
	if ctx.asked > 300 {
		t.Errorf("it was tried %d times in 200 ms", ctx.asked)
	}
}
