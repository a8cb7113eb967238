package bench_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/tools/bench"
	"tutti/internal/tools/bench/results"
	"tutti/internal/tools/bench/testbed"
)

// tiny returns sizes with which every benchmark takes a second or two. Its figures are not meaningful.
func tiny() testbed.Sizes {
	return testbed.Sizes{
		Records: 200, Studies: 4, Pairs: 2, Triggers: 5, Coalesced: 8, Repeats: 6, Documents: 1500, EmbeddedRecords: 120,
		SlowBulk: 50 * time.Millisecond, Notified: 200, NotifyRate: 200, NotifyFor: 300 * time.Millisecond,
		LoadFor: 100 * time.Millisecond, Listed: 240, Searched: 400, EmbeddedSearched: 400, EmbeddedLarge: 900,
		Downloaded: 600, Organizations: 20, DeadLetters: 30,
	}
}

// missingServer is another server that cannot be measured.
const missingServer = "/the/release/before"

func run(t *testing.T, cfg testbed.Config) []results.Report {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Sizes, cfg.Progress = tiny(), t.Output()
	cfg.Self, cfg.Server = []string{self, childArgument}, []string{self, childArgument, "serve"}
	if cfg.Out == nil {
		cfg.Out = t.Output()
	}
	reports, err := bench.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return reports
}

// figure returns the only figure whose name starts with name.
func figure(t *testing.T, r results.Report, name string) results.Figure {
	t.Helper()
	i := slices.IndexFunc(r.Figures, func(f results.Figure) bool { return strings.HasPrefix(f.Name, name) })
	if i < 0 {
		t.Fatalf("no figure %q in %+v", name, r)
	}
	return r.Figures[i]
}

// TestRunAll runs all benchmarks that need no real engine. The benchmarks check that each record arrived.
func TestRunAll(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the memory of a process is read from /proc")
	}
	var out bytes.Buffer
	profiles := t.TempDir()
	reports := run(t, testbed.Config{Out: &out, ProfileDir: profiles, Against: []string{missingServer}})
	names, seen := make([]string, 0, len(reports)), map[string]bool{}
	for _, r := range reports {
		names = append(names, r.Name)
		for _, f := range r.Figures {
			if name := r.Name + ": " + f.Name; seen[name] || strings.TrimSpace(f.Name) != f.Name {
				t.Errorf("%q does not name one figure", name)
			} else {
				seen[name] = true
			}
			if f.Arms == nil && strings.Contains(f.Name, " / ") && !strings.Contains(f.Name, "disk / raw data") || f.Arms != nil && len(f.Arms.Again) == 0 {
				t.Errorf("%s: the ratio %s has no A/A arm: %+v", r.Name, f.Name, f.Arms)
			}
			if len(f.Values) == 0 || f.Min() < 0 || f.Min() > f.Median() || f.Median() > f.Max() {
				t.Errorf("%s: %s has the values %v", r.Name, f.Name, f.Values)
			}
		}
	}
	if want := bench.Names()[1 : len(bench.Names())-3]; !slices.Equal(names, want) {
		t.Errorf("ran %v, want %v", names, want)
	}
	if !strings.Contains(out.String(), "backfill: skipped") {
		t.Errorf("backfill was not reported as skipped:\n%s", out.String())
	}
	for _, file := range []string{"own-cost.cpu.pprof", "own-cost.heap.pprof"} {
		if info, err := os.Stat(filepath.Join(profiles, file)); err != nil || info.Size() == 0 {
			t.Errorf("profile %s: %v", file, err)
		}
	}
	if !strings.Contains(out.String(), "\nAll figures, each judged by its median:\n") {
		t.Errorf("there is no table of all figures:\n%s", out.String())
	}
	checkCounts(t, reports)
}

func checkCounts(t *testing.T, reports []results.Report) {
	t.Helper()
	sizes := tiny()
	for _, r := range reports {
		switch r.Name {
		case "own-cost":
			total, speed := figure(t, r, "CPU per record, µs"), figure(t, r, "records/s")
			if len(total.Values) != sizes.Pairs || len(speed.Values) != sizes.Pairs {
				t.Errorf("own-cost: %d and %d values for %d runs", len(total.Values), len(speed.Values), sizes.Pairs)
			}
			user, system := figure(t, r, "CPU per record in its own code"), figure(t, r, "CPU per record in the system")
			for i, all := range total.Values {
				if sum := user.Values[i] + system.Values[i]; sum < all*0.999 || sum > all*1.001 {
					t.Errorf("own-cost: run %d took %v µs, its parts %v", i, all, sum)
				}
			}
		case "rebuild":
			if lost, failed := figure(t, r, "embedded index, 120 records: updates lost"), figure(t, r, "embedded index, 120 records: searches failed"); lost.Max() > 0 || failed.Max() > 0 {
				t.Errorf("rebuild: %v updates lost, %v searches failed: %v", lost.Values, failed.Values, r.Notes)
			}
		case "intake":
			for _, way := range []string{"triggers, 1 ", "triggers, 64", "notifications, 1 ", "notifications, 20 ", "notifications, 1000", "a list", "publications"} {
				if rates := figure(t, r, way); len(rates.Values) != sizes.Pairs || rates.Min() < 10 {
					t.Errorf("intake: %s: %v a second in %d runs", way, rates.Values, sizes.Pairs)
				}
			}
			if note := "triggers, 1 connection: not compared: starting " + missingServer; len(r.Notes) < 7 || !strings.Contains(strings.Join(r.Notes, "\n"), note) {
				t.Errorf("intake: the notes are %q", r.Notes)
			}
		case "coalesce":
			fetches := figure(t, r, "fetches").Values[0]
			if n := float64(sizes.Coalesced); fetches < n || fetches > n*float64(sizes.Repeats) {
				t.Errorf("coalesce: %v fetches for %v records", fetches, n)
			}
		case "memory":
			if most := figure(t, r, "study of 200: highest"); most.Max() < figure(t, r, "study of 200: median").Max() {
				t.Errorf("memory: the highest, %v, is below the median", most.Values)
			}
		case "schemas":
			if rates := figure(t, r, "GET /schemas"); len(rates.Values) != sizes.Pairs || rates.Min() < 10 {
				t.Errorf("schemas: %v reads a second in %d runs", rates.Values, sizes.Pairs)
			}
		case "metadata":
			if rates := figure(t, r, "SQLite: submissions"); len(rates.Values) != sizes.Pairs || rates.Min() < 10 {
				t.Errorf("metadata: %v submissions a second in %d runs", rates.Values, sizes.Pairs)
			}
		case "download":
			if speed := figure(t, r, "embedded index: rows/s"); len(speed.Values) != sizes.Pairs {
				t.Errorf("download: %d values for %d runs", len(speed.Values), sizes.Pairs)
			}
			before, most := figure(t, r, "embedded index: memory before"), figure(t, r, "embedded index: memory at most, downloads of 600")
			if before.Min() <= 0 || most.Max() < before.Min()/2 {
				t.Errorf("download: %v MB before, %v at most", before.Values, most.Values)
			}
		case "trigger":
			if taken, there := figure(t, r, "embedded index: 202, p50"), figure(t, r, "embedded index: in the index, p50"); taken.Max() > there.Max() {
				t.Errorf("trigger: accepted after %v, in the index after %v", taken.Values, there.Values)
			}
		}
	}
}

// TestAgainst: another server runs in turn with this one.
func TestAgainst(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sizes := tiny()
	sizes.Pairs, sizes.LoadFor = 1, 20*time.Millisecond
	reports, err := bench.Run(t.Context(), testbed.Config{
		Names: []string{"intake"}, Sizes: sizes, Out: t.Output(), Progress: t.Output(), Self: []string{self, childArgument},
		Server: []string{self, childArgument, "serve"}, Against: []string{self, childArgument, "serve"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if f := figure(t, reports[0], "triggers, 64 connections: a second / the other server's"); f.Min() <= 0 || len(f.Arms.Base) != 2 || len(f.Arms.Other) != 1 {
		t.Errorf("the runs are %+v", f.Arms)
	}
}

func TestRunPrintsJSON(t *testing.T) {
	var out bytes.Buffer
	run(t, testbed.Config{Names: []string{"embedded-index"}, JSON: &out})
	var printed results.All
	if err := json.Unmarshal(out.Bytes(), &printed); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	if printed.Machine.CPUs != runtime.NumCPU() || len(printed.Reports) != 1 || len(printed.Reports[0].Figures) != 2 {
		t.Errorf("printed %s", out.String())
	}
}

func TestRunRefuses(t *testing.T) {
	for _, test := range []struct {
		name, message string
		cfg           testbed.Config
	}{
		{"unknown name", `there is no benchmark "speed"`, testbed.Config{Names: []string{"speed"}}},
		{"no engine", "backfill needs a real engine: set --elasticsearch", testbed.Config{Names: []string{"backfill"}}},
		{"no records", "the numbers of records, studies and pairs must be positive", testbed.Config{Sizes: testbed.Sizes{Records: -1}}},
		{"too few records", "20 studies need at least 80 records", testbed.Config{Sizes: testbed.Sizes{Records: 79}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.cfg.Out = t.Output()
			_, err := bench.Run(t.Context(), test.cfg)
			if core.CodeOf(err) != core.CodeInvalid || core.MessageOf(err) != test.message {
				t.Errorf("got %v", err)
			}
		})
	}
}
