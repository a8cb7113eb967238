package upstream_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tutti/internal/core"
	"tutti/internal/upstream"
)

// checkSkipped compares a record that was skipped with the same record when kept.
func checkSkipped(t rapid.TB, skipped, held upstream.Item) {
	t.Helper()
	if skipped.Body != nil || skipped.TooLarge == nil {
		t.Fatalf("a record over the limit was held: %+v", skipped)
	}
	if want, got := core.NewDeadLetterDocument(held.Body), skipped.TooLarge; !reflect.DeepEqual(want, got) {
		t.Errorf("kept are %d of %d bytes with hash %s, want %d of %d with %s", len(got.Bytes), got.Size, got.SHA256, len(want.Bytes), want.Size, want.SHA256)
	}
	if d := cmp.Diff(toRow(held).Values, toRow(skipped).Values); d != "" || held.Bool != skipped.Bool {
		t.Errorf("flag %d, want %d; members (-want +got):\n%s", skipped.Bool, held.Bool, d)
	}
}

// checkLimits reads a page with several limits: it is accepted or not as without one, and each record is the same or was skipped.
func checkLimits(t rapid.TB, page []byte, want []row, wantErr error) {
	t.Helper()
	for _, limit := range []int{1, 7, 40} {
		n := 0
		s := upstream.NewScanner(shape(), limit)
		_, err := s.Page(iotest.OneByteReader(bytes.NewReader(bytes.Clone(page))), func(item upstream.Item) error {
			got := toRow(item)
			if item.TooLarge != nil {
				got.Body = string(item.TooLarge.Bytes) // the records here are small enough for a complete excerpt
			}
			if large := item.TooLarge != nil; n < len(want) && (large != (len(want[n].Body) > limit) || !cmp.Equal(want[n], got)) {
				t.Errorf("limit %d, record %d: too large %v, %+v, want %+v", limit, n, large, got, want[n])
			}
			n++
			return nil
		})
		if (err == nil) != (wantErr == nil) || err == nil && n != len(want) {
			t.Errorf("limit %d: %d records and %v, want %d and %v of %q", limit, n, err, len(want), wantErr, page)
		}
	}
}

// TestScannerSkipsLargeRecords: records over the limit are reported with their excerpt and their members, before and after the large
// value, and their neighbours are read.
func TestScannerSkipsLargeRecords(t *testing.T) {
	t.Parallel()
	large := `"x":["` + strings.Repeat(`é\n\"`, 100_000) + `",{"analysisId":"n","y":[` + strings.Repeat(`-1.5e3, true ,null,`, 10_000) + `0]}]`
	members := `"analysisId":"b","study\u0049d":"S","analysisState":"PUBLISHED"`
	small := `{"analysisId":"a","studyId":"S"}`
	withFlag := shape()
	withFlag.BoolMember = "isValid"
	for _, body := range []string{
		`{` + large + `,` + members + `,"isValid":true}`, `{` + members + `,"isValid":false,` + large + `}`,
		"{\"isValid\"\r\n:true,\"analysisId\":\"b\",\n" + large + ",\"studyId\":5}",
		`{"analysisId":"` + strings.Repeat("i", 1<<20) + `",` + large + `,"isValid":"true"}`,
	} {
		held, err := upstream.NewScanner(withFlag, 0).Record(strings.NewReader(body), -1)
		if err != nil {
			t.Fatal(err)
		}
		if len(held.Values[0]) > 8<<10 {
			held.Values[0] = nil // no id is as long
		}
		s := upstream.NewScanner(withFlag, 64<<10)
		skipped, err := s.Record(strings.NewReader(body), int64(len(body)))
		if err != nil {
			t.Fatal(err)
		}
		checkSkipped(t, skipped, held)
		var got []string
		page := `{"analyses":[` + small + `,` + body + ` , ` + small + `,` + body + `],"totalAnalyses":4}`
		envelope, err := s.Page(iotest.HalfReader(strings.NewReader(page)), func(item upstream.Item) error {
			got = append(got, fmt.Sprintf("%.9s %v", item.Values[0], item.TooLarge != nil))
			if item.TooLarge != nil {
				checkSkipped(t, item, held)
			}
			return nil
		})
		id := fmt.Sprintf("%.9s", held.Values[0])
		if d := cmp.Diff([]string{"a false", id + " true", "a false", id + " true"}, got); err != nil || d != "" || string(envelope.Values[0]) != "4" {
			t.Errorf("%v, total %s, records (-want +got):\n%s", err, envelope.Values[0], d)
		}
	}
}

// TestScannerSkipsInBoundedMemory reads a record of 64 MiB: the allocated memory does not depend on its size.
func TestScannerSkipsInBoundedMemory(t *testing.T) {
	const limit, size = 1 << 20, 64 << 20
	body := io.MultiReader(strings.NewReader(`{"analyses":[{"analysisId":"a","x":"`), io.LimitReader(endless{}, size),
		strings.NewReader(`"},{"analysisId":"b"}]}`))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var sizes []int
	_, err := upstream.NewScanner(shape(), limit).Page(body, func(item upstream.Item) error {
		if item.TooLarge != nil {
			sizes = append(sizes, item.TooLarge.Size)
		}
		return nil
	})
	runtime.ReadMemStats(&after)
	if err != nil || len(sizes) != 1 || sizes[0] < size {
		t.Fatalf("%v, sizes %v", err, sizes)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8*limit {
		t.Errorf("%d bytes were allocated for a limit of %d", grown, limit)
	}
}

// endless is an endless sequence of the letter x.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// TestScannerSkipsNoLineBreakInText: a control character in a string is an error, also one that is white space between values.
func TestScannerSkipsNoLineBreakInText(t *testing.T) {
	for _, c := range "\n\r\t\x01" {
		page := `{"analyses":[{"x":"aaaaaaaaaa` + string(c) + `"":""}]}`
		_, err := upstream.NewScanner(shape(), 7).Page(iotest.OneByteReader(strings.NewReader(page)), func(upstream.Item) error { return nil })
		if !errors.Is(err, upstream.ErrMalformed) {
			t.Errorf("%q: %v", c, err)
		}
	}
}

// TestScannerLimitsChangeNothingElse: random pages are read in the same way with any limit.
func TestScannerLimitsChangeNothingElse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		bodies := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return drawObject(t, 3) }), 0, 4).Draw(t, "records")
		page := []byte(`{"analyses":[` + strings.Join(bodies, " ,\n") + `]}`)
		if rapid.Bool().Draw(t, "broken") {
			page[rapid.IntRange(0, len(page)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		var rows []row
		_, err := upstream.NewScanner(shape(), 0).Page(bytes.NewReader(bytes.Clone(page)), func(item upstream.Item) error {
			rows = append(rows, toRow(item))
			return nil
		})
		checkLimits(t, page, rows, err)
	})
}
