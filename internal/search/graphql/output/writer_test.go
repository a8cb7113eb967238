package output_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/core"
	"tutti/internal/search/graphql/output"
)

// TestWriter: each method writes JSON.
func TestWriter(t *testing.T) {
	var w output.Writer
	w.List(9, func(i int) {
		switch i {
		case 0:
			w.Text("a\"\n")
		case 1:
			w.Int(-7)
		case 2:
			w.Number(1e-7)
		case 3:
			w.Number(math.Copysign(0, -1))
		case 4:
			w.Number(math.Inf(1))
		case 5:
			w.Number(math.NaN())
		case 6:
			w.Raw([]byte(`{"a":1}`))
		case 7:
			w.Raw(nil)
		default:
			w.List(0, nil)
		}
	})
	if got, want := string(w.Buf), `["a\"\n",-7,1e-7,0,null,null,{"a":1},null,[]]`; got != want {
		t.Errorf("wrote %s, want %s", got, want)
	}
	if got := string(output.Key(&ast.Field{Alias: "a"})); got != `"a":` {
		t.Errorf("a key is %s", got)
	}
}

// TestErrorPaths: an error has the path at which it was recorded, also after that was left.
func TestErrorPaths(t *testing.T) {
	var w output.Writer
	w.Push("hits")
	w.List(2, func(i int) {
		w.Push("id")
		if i == 1 {
			w.NullWithError(output.InputError("bad").At(&ast.Position{Line: 3, Column: 5}))
		} else {
			w.Null()
		}
		w.Pop()
	})
	w.Pop()
	got := string(output.AppendErrors(nil, w.Errors))
	want := `"errors":[{"message":"bad","locations":[{"line":3,"column":5}],"path":["hits",1,"id"],"extensions":{"code":"BAD_USER_INPUT"}}]`
	if got != want || string(w.Buf) != "[null,null]" {
		t.Errorf("wrote %s and %s, want %s", w.Buf, got, want)
	}
}

// TestErrorsAreBounded: those beyond the limit are counted, and a list that is too large is null with an error.
func TestErrorsAreBounded(t *testing.T) {
	var w output.Writer
	for range output.MaxErrors + 3 {
		w.AddError(output.InputError("bad"))
	}
	if len(w.Errors) != output.MaxErrors || w.Dropped != 3 || w.ErrorCount() != output.MaxErrors+3 {
		t.Errorf("%d errors, %d dropped", len(w.Errors), w.Dropped)
	}
	w.Clear()
	if w.ErrorCount() != 0 {
		t.Errorf("%d errors after Clear", w.ErrorCount())
	}
	w.Buf = make([]byte, output.MaxBytes, output.MaxBytes+64)
	w.List(3, func(int) { w.Int(1) })
	if got := string(w.Buf[output.MaxBytes:]); got != "null" || len(w.Errors) != 1 || w.Errors[0].Message != output.TooLarge().Message {
		t.Errorf("wrote %s with %d errors", got, len(w.Errors))
	}
}

// TestRollback: what was written since the mark is gone, what was written before stays.
func TestRollback(t *testing.T) {
	var w output.Writer
	w.Int(1)
	w.AddError(output.InputError("first"))
	w.Warn(output.SeveralValues("a"))
	mark := w.Mark()
	w.Int(2)
	w.AddError(output.InputError("second"))
	w.Warn(output.SeveralValues("a"), output.SeveralValues("b"))
	if len(w.Warnings) != 2 {
		t.Errorf("%d warnings, want each once", len(w.Warnings))
	}
	w.Rollback(mark)
	if string(w.Buf) != "1" || mark.Bytes != 1 || len(w.Errors) != 1 || len(w.Warnings) != 1 {
		t.Errorf("%s, %d errors and %d warnings are left", w.Buf, len(w.Errors), len(w.Warnings))
	}
}

// TestErrorOf: a client learns the code and the message of an error of tutti, and nothing of another one.
func TestErrorOf(t *testing.T) {
	for code, want := range map[core.Code]string{
		core.CodeInvalid: "BAD_USER_INPUT", core.CodeNotFound: "BAD_USER_INPUT", core.CodeTooLarge: "BAD_USER_INPUT", core.CodeConflict: "BAD_USER_INPUT",
		core.CodeUnsupported: "BAD_USER_INPUT", core.CodeAbsent: "BAD_USER_INPUT", core.CodeUnauthenticated: "UNAUTHENTICATED",
		core.CodeForbidden: "FORBIDDEN", core.CodeUnavailable: "SERVICE_UNAVAILABLE", core.CodeOverloaded: "SERVICE_UNAVAILABLE",
		core.CodeIndexBlocked: "SERVICE_UNAVAILABLE", core.CodeInternal: "INTERNAL_SERVER_ERROR",
	} {
		got := output.ErrorOf(fmt.Errorf("within: %w", core.WrapError(code, "what a client may read", errors.New("secret"))))
		if got.Code != want || got.Message != "what a client may read" {
			t.Errorf("%s is %s %q, want %s", code, got.Code, got.Message, want)
		}
	}
	for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
		if got := output.ErrorOf(fmt.Errorf("within: %w", cause)); got.Code != output.CodeUnavailable || got.Message != "request timed out" {
			t.Errorf("%v is %s %q", cause, got.Code, got.Message)
		}
	}
	if got := output.ErrorOf(errors.New("secret")); got.Code != output.CodeInternal || strings.Contains(got.Message, "secret") {
		t.Errorf("an unknown error is %s %q", got.Code, got.Message)
	}
	hinted := &core.Error{Code: core.CodeInvalid, Message: "m", Hint: "h", Violations: []core.Violation{{Pointer: "/a", Message: "v", Keyword: "type"}}}
	got := string(output.AppendErrors(nil, []*output.Error{output.ErrorOf(hinted)}))
	want := `"errors":[{"message":"m","extensions":{"code":"BAD_USER_INPUT","hint":"h","violations":[{"pointer":"/a","message":"v","keyword":"type"}]}}]`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestRejection: the response of a rejected request is whole, and says whether a mutation was sent in a request that only reads.
func TestRejection(t *testing.T) {
	for _, mutation := range []bool{false, true} {
		faults := []*output.Error{output.InputError("<bad> & more")}
		if mutation {
			faults = append(faults, output.MutationError())
		}
		got := output.Rejection(faults...)
		var body struct {
			Errors []struct{ Message string }
		}
		if err := json.Unmarshal(got.Body, &body); err != nil || len(body.Errors) != len(faults) || !strings.Contains(string(got.Body), "<bad> & more") {
			t.Errorf("the body is %s (%v)", got.Body, err)
		}
		if !got.Rejected || got.RejectedMutation != mutation {
			t.Errorf("rejected %v, as a mutation %v, want %v", got.Rejected, got.RejectedMutation, mutation)
		}
	}
}

// TestWarnings: their numbers are in their messages.
func TestWarnings(t *testing.T) {
	got := string(output.AppendWarnings(nil, []output.Warning{output.PageClamped(500, 100), output.BucketsClamped("sex", 10, 12)}))
	var want strings.Builder
	want.WriteString(`"extensions":{"warnings":[{"code":"PAGE_CLAMPED","message":"first is 500, and a page has 100 documents at most: only those are returned",`)
	want.WriteString(`"hint":"read the rest page by page: pass the searchAfter of the last edge to the next page"},`)
	want.WriteString(`{"code":"BUCKETS_CLAMPED","message":"the field sex has 12 values in the documents: only the 10 in most documents are returned",`)
	want.WriteString(`"field":"sex","hint":"select fewer documents by a filter"}]}`)
	if diff := cmp.Diff(want.String(), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUnsafeInteger: JavaScript rounds whole numbers beyond 2^53 - 1.
func TestUnsafeInteger(t *testing.T) {
	for text, want := range map[string]bool{
		"9007199254740991": false, "9007199254740992": true, "-9007199254740991": false, "-9007199254740992": true,
		"99999999999999999999999": true, "9007199254740992.0": false, "1e300": false, "12": false, `"9007199254740992"`: false,
	} {
		if got := output.UnsafeInteger([]byte(text)); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// TestBufferPool: a buffer is empty and as large as requested; very small and very large ones are not kept.
func TestBufferPool(t *testing.T) {
	var pool output.BufferPool
	for _, size := range []int{0, 4 << 10, 1 << 20, 9 << 20} {
		buf := append(pool.Get(size), "x"...)
		pool.Put(buf)
		if again := pool.Get(size); len(again) != 0 || cap(again) < size {
			t.Errorf("a buffer of %d has %d of %d bytes", size, len(again), cap(again))
		}
	}
}
