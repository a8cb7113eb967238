package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/indextest"
	"tutti/internal/tools/indextest/sharedtest"
	"tutti/internal/tools/testkit"
)

func open(t *testing.T, cfg embedded.Config) *embedded.Index {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	x, err := embedded.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

func ensure(t *testing.T, x *embedded.Index, spec index.Spec) {
	t.Helper()
	if err := x.Ensure(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
}

// batchOf encodes writes.
func batchOf(x *embedded.Index, alias string, writes ...core.Write) core.Batch {
	b := core.Batch{Index: alias}
	for _, w := range writes {
		item := core.BatchItem{Op: w.Op, ID: w.ID, Version: w.Version, Start: len(b.Body)}
		b.Body, item.DocStart, item.DocEnd = x.Encode(b.Body, w)
		item.End = len(b.Body)
		b.Items = append(b.Items, item)
	}
	return b
}

// write writes one batch and returns the outcomes.
func write(t *testing.T, x *embedded.Index, alias string, writes ...core.Write) []core.Result {
	t.Helper()
	results, err := x.Write(t.Context(), batchOf(x, alias, writes...))
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func put(id string, v core.Version, doc string) core.Write {
	return core.Write{ID: id, Version: v, Document: []byte(doc)}
}

func count(t *testing.T, x *embedded.Index, alias string, scope core.IndexScope) int64 {
	t.Helper()
	n, err := x.Count(t.Context(), alias, scope)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestConformance(t *testing.T) {
	indextest.Run(t, func(t *testing.T) index.Index { return open(t, embedded.Config{}) }, indextest.Dialect{NoRuntimeFields: true, DotsKept: true, StrictRanges: true})
	sharedtest.Run(t, func(t *testing.T) index.Index { return open(t, embedded.Config{}) })
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	first := open(t, embedded.Config{Dir: dir})
	_, err := embedded.Open(embedded.Config{Dir: dir})
	if core.CodeOf(err) != core.CodeConflict || core.MessageOf(err) != "the embedded index is in use by another process" {
		t.Errorf("a second Open returned %v", err)
	}
	wantHint(t, err, "stop the other process, or configure another dataDir")
	open(t, embedded.Config{}) // another folder
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, embedded.Config{Dir: dir})
	if _, err := embedded.Open(embedded.Config{}); core.CodeOf(err) != core.CodeInvalid {
		t.Errorf("Open without a folder returned %v", err)
	}
	if _, err := embedded.Open(embedded.Config{Dir: dir, PruneEvery: -1}); core.CodeOf(err) != core.CodeInvalid {
		t.Errorf("Open with a negative time returned %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.Open(embedded.Config{Dir: filepath.Join(file, "x")}); core.CodeOf(err) != core.CodeUnavailable {
		t.Errorf("Open below a file returned %v", err)
	}
}

func TestReopen(t *testing.T) {
	dir := t.TempDir()
	x := open(t, embedded.Config{Dir: dir})
	ensure(t, x, index.Spec{Alias: "analyses", Known: mapping.Song()})
	ensure(t, x, index.Spec{Alias: "other", Mapping: []byte(
		`{"settings":{"index":{"mapping":{"total_fields":{"limit":3}}}},"mappings":{"properties":{"a":{"type":"text"}}}}`)})
	write(t, x, "analyses", put("a", 1, `{"studyId":"S","grown":[{"x":1}]}`), put("b", 2, `{"studyId":"S"}`),
		put("c", 3, `{"studyId":"T"}`), core.Write{Op: core.OpDelete, ID: "b", Version: 5})
	want, err := x.Mapping(t.Context(), "analyses")
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	x = open(t, embedded.Config{Dir: dir})
	got, err := x.Mapping(t.Context(), "analyses")
	if err != nil || string(got) != string(want) {
		t.Errorf("the mapping was %s and is %s (%v)", want, got, err)
	}
	if n := count(t, x, "analyses", core.IndexScope{Field: "studyId", Organization: "S"}); n != 1 {
		t.Errorf("study S has %d documents, want 1", n)
	}
	results := write(t, x, "analyses", put("b", 4, `{}`), put("d", 1, `{"studyId":"S"}`))
	if results[0].Outcome != core.OutcomeStale || results[0].CurrentVersion != 5 {
		t.Errorf("a late write over a deletion returned %+v", results[0])
	}
	if n := count(t, x, "analyses", core.IndexScope{Field: "studyId", Organization: "S"}); n != 2 {
		t.Errorf("study S has %d documents, want 2", n)
	}
	results = write(t, x, "other", put("a", 1, `{"b":1,"c":1}`), put("b", 1, `{"d":1}`), put("c", 1, `{"a":"x"}`))
	if results[1].Outcome != core.OutcomeRejected || results[1].Type != core.TypeIllegalArgument ||
		results[1].Reason != "Limit of total fields [3] has been exceeded" || results[2].Outcome != core.OutcomeIndexed {
		t.Errorf("beyond the limit of fields: %+v", results)
	}
}

func TestLimits(t *testing.T) {
	x := open(t, embedded.Config{Limits: mapping.Limits{Fields: 1000, Nested: 50, Depth: 20, Objects: 100}})
	ensure(t, x, index.Spec{Alias: "a", Known: mapping.Song()})
	var many, nested strings.Builder
	for i := range 1001 {
		fmt.Fprintf(&many, `"k%d":%d,`, i, i)
	}
	for i := range 51 {
		fmt.Fprintf(&nested, `"n%d":[{"x":1}],`, i)
	}
	for _, doc := range []string{
		`{` + many.String() + `"x":1}`, `{` + nested.String() + `"x":1}`,
		strings.Repeat(`{"x":`, 21) + `1` + strings.Repeat(`}`, 21),
		`{"new":[` + strings.Repeat(`{"x":1},`, 100) + `{"x":1}]}`, `{"files":[` + strings.Repeat(`{"fileSize":1},`, 100) + `{}]}`,
	} {
		results := write(t, x, "a", put("poison", 1, doc), put("good", 1, `{"y":1}`))
		if results[0].Outcome != core.OutcomeRejected || results[0].Hint == "" || results[1].Outcome != core.OutcomeIndexed {
			t.Errorf("%.40s: %+v", doc, results)
		}
	}
	if tree, err := x.Mapping(t.Context(), "a"); err != nil || strings.Contains(string(tree), `"new"`) {
		t.Errorf("a rejected document has changed the mapping: %s, %v", tree, err)
	}
	if got := write(t, x, "a", put("fits", 1, `{"new":[`+strings.Repeat(`{"x":1},`, 99)+`{"x":1}]}`)); got[0].Outcome != core.OutcomeIndexed {
		t.Errorf("%+v", got)
	}
	for settings, want := range map[string]int{`{}`: 0, `{"index.mapping.nested_objects.limit":500}`: 1} {
		c, err := x.Compare(t.Context(), index.Spec{Alias: "a", Known: mapping.Song(), Mapping: []byte(`{"settings":` + settings + `}`)})
		if err != nil || len(c.Limits) != want || want > 0 && c.Limits[0] != (index.SettingDifference{Setting: "index.mapping.nested_objects.limit", Wanted: "500", Live: "100"}) {
			t.Errorf("%s: %+v, %v", settings, c.Limits, err)
		}
	}
	err := x.Ensure(t.Context(), index.Spec{Alias: "b", Mapping: []byte(`{"settings":{"index.mapping.total_fields.limit":1},
		"mappings":{"properties":{"a":{"type":"text"},"b":{"type":"text"}}}}`)})
	if core.CodeOf(err) != core.CodeInvalid {
		t.Errorf("a mapping over its own limit returned %v", err)
	}
}

func TestEnsureRefuses(t *testing.T) {
	x := open(t, embedded.Config{})
	for _, name := range []string{"", ".", "..", "Upper", "a b", "a/b", "_a", "-a", "a*", "a:b", strings.Repeat("a", 256)} {
		if err := x.Ensure(t.Context(), index.Spec{Alias: name}); core.CodeOf(err) != core.CodeInvalid {
			t.Errorf("alias %q returned %v", name, err)
		}
	}
	if err := x.Ensure(t.Context(), index.Spec{Alias: "a", Mapping: []byte(`[]`)}); core.CodeOf(err) != core.CodeInvalid {
		t.Errorf("a mapping that is none returned %v", err)
	}
	if err := x.Check(t.Context(), "a"); core.CodeOf(err) != core.CodeIndexBlocked {
		t.Errorf("Check returned %v", err)
	}
}

func TestClosed(t *testing.T) {
	x := open(t, embedded.Config{})
	ensure(t, x, index.Spec{Alias: "a"})
	var calls sync.WaitGroup
	for w := range 4 {
		calls.Go(func() {
			for n := 0; ; n++ {
				b := core.Batch{Index: "a", Body: []byte(`{}`), Items: []core.BatchItem{{
					ID: fmt.Sprint(w, n), Version: 1, DocEnd: 2, End: 2,
				}}}
				if _, err := x.Write(t.Context(), b); err != nil {
					if core.CodeOf(err) != core.CodeUnavailable {
						t.Errorf("Write: %v", err)
					}
					return
				}
			}
		})
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	calls.Wait()
	if err := x.Close(); err != nil {
		t.Errorf("Close again: %v", err)
	}
	_, _, getErr := x.Get(t.Context(), "a", "x")
	for _, err := range []error{x.Ping(t.Context()), x.Check(t.Context(), "a"), getErr, x.Ensure(t.Context(), index.Spec{Alias: "b"})} {
		if core.CodeOf(err) != core.CodeUnavailable || core.MessageOf(err) != "the index is closed" {
			t.Errorf("a call after Close returned %v", err)
		}
	}
}

func TestTombstonesAge(t *testing.T) {
	dir := t.TempDir()
	var now atomic.Int64
	now.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	cfg := embedded.Config{Dir: dir, Now: func() time.Time { return time.Unix(0, now.Load()) }}
	x := open(t, cfg)
	ensure(t, x, index.Spec{Alias: "a"})
	var writes []core.Write
	for i := range 5000 {
		writes = append(writes, core.Write{Op: core.OpDelete, ID: fmt.Sprint("old", i), Version: 10})
	}
	write(t, x, "a", writes...)
	write(t, x, "a", core.Write{Op: core.OpDelete, ID: "again", Version: 10}, put("back", 9, `{}`),
		core.Write{Op: core.OpDelete, ID: "back", Version: 10})
	now.Add(int64(23 * time.Hour))
	write(t, x, "a", core.Write{Op: core.OpDelete, ID: "again", Version: 20}, put("back", 11, `{}`))
	reopen := func() {
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		x = open(t, cfg)
	}
	reopen()
	if r := write(t, x, "a", put("old1", 5, `{}`)); r[0].Outcome != core.OutcomeStale {
		t.Errorf("a deletion of 23 h ago returned %+v", r[0])
	}
	now.Add(int64(2 * time.Hour))
	reopen()
	// Tombstones are removed in the background: a write of a lower version is stale until then.
	waitFor(t, func() bool {
		r := write(t, x, "a", put("old0", 5, `{}`), put("old4999", 5, `{}`))
		return r[0].Outcome == core.OutcomeIndexed && r[1].Outcome == core.OutcomeIndexed
	})
	r := write(t, x, "a", put("again", 15, `{}`), put("back", 10, `{}`))
	if r[0].Outcome != core.OutcomeStale || r[1].Outcome != core.OutcomeStale {
		t.Errorf("a younger deletion and a document that came back: %+v", r)
	}
	if n := count(t, x, "a", core.IndexScope{}); n != 3 {
		t.Errorf("%d documents, want 3", n)
	}
}

// waitFor checks every millisecond until done, or fails after the test's time limit.
func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	check := time.NewTicker(time.Millisecond)
	defer check.Stop()
	for deadline := time.Now().Add(testkit.HangLimit); !done(); <-check.C {
		if time.Now().After(deadline) {
			t.Fatalf("the condition was not met in %s", testkit.HangLimit)
		}
	}
}

// TestScopeOfAnyField selects by a field without entries in the scopes bucket.
func TestScopeOfAnyField(t *testing.T) {
	x := open(t, embedded.Config{})
	ensure(t, x, index.Spec{Alias: "a", Known: mapping.Song()})
	var writes []core.Write
	for i := range 500 {
		writes = append(writes, put(fmt.Sprint(i), core.Version(i+1), fmt.Sprintf(
			`{"studyId":"S","analysisType":{"name":"n%d"},"data":[{"centre":"c\u0031%d"}],"repositories":[{"code":"r%d"}]}`,
			i%2, i%5, i%3)))
	}
	write(t, x, "a", writes...)
	for _, c := range []struct {
		scope core.IndexScope
		want  int64
	}{
		{core.IndexScope{Field: "analysisType.name", Organization: "n1"}, 250},
		{core.IndexScope{Field: "data.centre", Organization: "c13"}, 100},
		{core.IndexScope{Repository: "r0", Field: "analysisType.name", Organization: "n0"}, 84},
		{core.IndexScope{Field: "unknown", Organization: "x"}, 0},
		{core.IndexScope{Field: "studyId"}, 0},
	} {
		if got := count(t, x, "a", c.scope); got != c.want {
			t.Errorf("Count(%+v) = %d, want %d", c.scope, got, c.want)
		}
	}
}

// TestRewrites checks that documents that are rewritten often leave neither rows nor scopes behind.
func TestRewrites(t *testing.T) {
	dir := t.TempDir()
	x := open(t, embedded.Config{Dir: dir})
	ensure(t, x, index.Spec{Alias: "a", Known: mapping.Song()})
	var size int64
	for round := range 30 {
		var writes []core.Write
		for i := range 300 {
			writes = append(writes, core.Write{
				ID: fmt.Sprint(i), Version: core.Version(round + 1), Document: analysis(fmt.Sprint(i), i+round),
			})
		}
		write(t, x, "a", writes...)
		info, err := os.Stat(filepath.Join(dir, "index.db"))
		if err != nil {
			t.Fatal(err)
		}
		if round == 9 {
			size = info.Size()
		} else if round > 9 && info.Size() > 2*size {
			t.Fatalf("the file grew from %d to %d bytes by rewrites", size, info.Size())
		}
	}
	sum := int64(0)
	for s := range 7 {
		sum += count(t, x, "a", core.IndexScope{Field: "studyId", Organization: fmt.Sprint("STUDY-", s)})
	}
	if all := count(t, x, "a", core.IndexScope{}); all != 300 || sum != 300 {
		t.Errorf("%d documents, %d by study, want 300", all, sum)
	}
}

func TestGivingUp(t *testing.T) {
	x := open(t, embedded.Config{})
	ensure(t, x, index.Spec{Alias: "a"})
	write(t, x, "a", put("x", 1, `{}`))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := x.Write(ctx, core.Batch{Index: "a"})
	scanErr := x.Scan(ctx, "a", core.IndexScope{}, 0, func(string, core.Version) error { return nil })
	for _, err := range []error{err, scanErr} {
		if core.CodeOf(err) != core.CodeUnavailable || !errors.Is(err, ctx.Err()) {
			t.Errorf("a call that was cancelled returned %v", err)
		}
	}
}

func TestMappingOfAClosedIndex(t *testing.T) {
	x, err := embedded.Open(embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = x.Mapping(t.Context(), "a")
	if core.CodeOf(err) != core.CodeUnavailable || core.MessageOf(err) != "the index is closed" || !errors.Is(err, core.ErrIndexUnreachable) {
		t.Errorf("got %v", err)
	}
}
