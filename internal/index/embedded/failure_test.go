package embedded_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"reflect"
	"sync/atomic"
	"testing"
	"unsafe"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
	"tutti/internal/tools/testkit"
)

// Failure modes of a disk.
const (
	diskWhole = iota
	// diskDead rejects all writes after the allowed transactions.
	diskDead
	// diskUnsure writes everything, but reports an error for the write that ends a transaction.
	diskUnsure
)

// disk simulates failures between an index and its file.
type disk struct {
	state atomic.Int32
	// allowed is the number of transactions until the disk fails, refused the number of writes rejected.
	allowed, refused atomic.Int32
}

var errDisk = errors.New("the disk is broken")

// openOnDisk puts a disk below an idle index.
func openOnDisk(t *testing.T, x *embedded.Index) *disk {
	t.Helper()
	field := reflect.ValueOf(embedded.File(x)).Elem().FieldByName("db").Elem().FieldByName("ops")
	if !field.IsValid() || !field.FieldByName("writeAt").IsValid() {
		t.Fatal("bbolt's way of writing has changed")
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

// TestFailedTransaction checks that searches return what is in the file, also while the outcome of a transaction is unknown.
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
			d := openOnDisk(t, x)
			d.state.Store(test.state)
			b := batchOf(x, "a", put("a", 2, `{"n":2}`), core.Write{Op: core.OpDelete, ID: "b", Version: 2}, put("c", 2, `{"n":2}`))
			if _, err := x.Write(t.Context(), b); core.CodeOf(err) != core.CodeUnavailable || core.MessageOf(err) != "writing to the index failed" || !errors.Is(err, errDisk) {
				t.Fatalf("a write to a spoilt disk returned %v", err)
			}
			d.state.Store(diskWhole)
			ctx, cancel := context.WithTimeout(t.Context(), testkit.HangLimit) // exceeded only when sources and snapshot do not match
			defer cancel()
			if _, err := x.Search(ctx, "a", []index.SearchRequest{{Hits: &index.HitsRequest{Size: 5}}}); err != nil {
				t.Fatal(err)
			}
			checkSearches(t, x, "a", test.want)
			write(t, x, "a", put("d", 3, `{"n":3}`))
			want := maps.Clone(test.want)
			want["d"] = `{"n":3}`
			checkSearches(t, x, "a", want)
			checkSearches(t, reopened(t, x, cfg), "a", want)
		})
	}
}
