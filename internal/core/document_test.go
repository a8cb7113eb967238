package core_test

import (
	"errors"
	"fmt"
	"testing"

	"tutti/internal/core"
)

// TestWriteExcept: each item has its own result, whichever are rejected, and write gets the bytes of the others.
func TestWriteExcept(t *testing.T) {
	var b core.Batch
	for i := range 4 {
		start := len(b.Body)
		b.Body = fmt.Appendf(b.Body, "h%d d%d\n", i, i)
		b.Items = append(b.Items, core.BatchItem{ID: fmt.Sprint(i), Start: start, DocStart: start + 3, DocEnd: start + 5, End: start + 6})
	}
	echo := func(rest core.Batch) ([]core.Result, error) {
		results := make([]core.Result, len(rest.Items))
		for i, item := range rest.Items {
			if string(rest.Payload()[item.Start:item.End]) != fmt.Sprintf("h%s d%s\n", item.ID, item.ID) {
				t.Errorf("item %s is %q", item.ID, rest.Payload()[item.Start:item.End])
			}
			results[i] = core.Result{Outcome: core.OutcomeIndexed, Reason: string(rest.Document(i))}
		}
		return results, nil
	}
	for mask := range 1 << len(b.Items) {
		rejected := map[int]core.Result{}
		for i := range b.Items {
			if mask>>i&1 == 1 {
				rejected[i] = core.Result{Outcome: core.OutcomeRejected, Reason: fmt.Sprint("no ", i)}
			}
		}
		results, err := b.WriteExcept(rejected, echo)
		if err != nil || len(results) != len(b.Items) {
			t.Fatalf("%v: %v, %v", rejected, results, err)
		}
		for i, r := range results {
			want := core.Result{Outcome: core.OutcomeIndexed, Reason: fmt.Sprint("d", i)}
			if no, is := rejected[i]; is {
				want = no
			}
			if r != want {
				t.Errorf("%v: item %d has %v", rejected, i, r)
			}
		}
	}
	one := map[int]core.Result{1: {Outcome: core.OutcomeRejected}}
	short := func(core.Batch) ([]core.Result, error) { return make([]core.Result, 4), nil }
	if results, err := b.WriteExcept(one, short); results != nil || core.CodeOf(err) != core.CodeUnavailable {
		t.Errorf("another number of results: %v, %v", results, err)
	}
	fault := errors.New("no")
	if _, err := b.WriteExcept(one, func(core.Batch) ([]core.Result, error) { return nil, fault }); !errors.Is(err, fault) {
		t.Errorf("an error: %v", err)
	}
}
