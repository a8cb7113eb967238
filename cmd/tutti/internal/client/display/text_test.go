package display_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/cmd/tutti/internal/client/display"
)

func TestCountAndDuration(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 12: "12", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := display.Count(n); got != want {
			t.Errorf("Count(%d) = %s, want %s", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0s", 1234567 * time.Nanosecond: "1ms", 1500 * time.Millisecond: "1.5s", 12345 * time.Millisecond: "12s",
		61 * time.Second: "1m1s", time.Hour + 90*time.Second: "1h2m",
	} {
		if got := display.Duration(d); got != want {
			t.Errorf("Duration(%d) = %s, want %s", d, got, want)
		}
	}
	for perSecond, want := range map[float64]string{0: "0/s", 0.25: "0.2/s", 3.6: "3.6/s", 1234.5: "1,235/s"} {
		if got := display.Rate(perSecond); got != want {
			t.Errorf("Rate(%f) = %s, want %s", perSecond, got, want)
		}
	}
	if got := display.Time(time.Time{}); got != "-" {
		t.Errorf("no time is %s", got)
	}
	at := time.Date(2026, 5, 4, 12, 0, 0, 999, time.UTC)
	if parsed, err := time.Parse(time.RFC3339, display.Time(at)); err != nil || !parsed.Equal(at.Truncate(time.Second)) {
		t.Errorf("%s, %v", parsed, err)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	table := display.NewTable("NAME", ">N", "LAST")
	table.Row("国立", "7", "")
	table.Row("a\nb", "1,000", "x")
	table.Row("short")
	var out bytes.Buffer
	if err := table.Write(&out); err != nil {
		t.Fatal(err)
	}
	want := "NAME       N  LAST\n国立       7  -\na\\nb   1,000  x\nshort      -  -\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	if err := table.Write(failingWriter{}); !errors.Is(err, errFull) {
		t.Errorf("error %v", err)
	}
}

func TestKeyValues(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := display.KeyValues(&out, "id", "7", "nothing here", "", "reason", "a\nb"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("id      7\nreason  a\\nb\n", out.String()); diff != "" {
		t.Error(diff)
	}
	if err := display.KeyValues(failingWriter{}, "id", "7"); !errors.Is(err, errFull) {
		t.Errorf("error %v", err)
	}
}

var errFull = errors.New("no space")

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errFull }
