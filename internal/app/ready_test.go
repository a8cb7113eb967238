package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"tutti/internal/app"
	"tutti/internal/config"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
)

// hangingIndex is an index whose Ping hangs.
type hangingIndex struct{ index.Index }

func (hangingIndex) Ping(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestReadyWithAHangingPart: a component that hangs is down, and no other one.
func TestReadyWithAHangingPart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x, err := embedded.Open(embedded.Config{Dir: filepath.Join(dir, "elsewhere")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	cfg, err := config.Load("", []string{"TUTTI_SERVER_LISTEN=127.0.0.1:0", "TUTTI_DATA_DIR=" + dir})
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.New(cfg, app.Options{Index: hangingIndex{x}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Stop(context.WithoutCancel(t.Context())) })
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.URL()+"/ready", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var got struct {
		Status     string
		Ready      bool
		Reasons    []string
		Components map[string]string
	}
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || got.Status != "healthy" || !got.Ready || got.Components["index"] != "down" ||
		!slices.Contains(got.Reasons, "index: did not answer within 2s") ||
		got.Components["store"] != "up" || got.Components["queue"] != "up" {
		t.Errorf("%d, %+v", res.StatusCode, got)
	}
	up := map[string]float64{}
	families, err := a.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	var free float64
	for _, family := range families {
		if family.GetName() == "tutti_data_free_bytes" {
			free = family.GetMetric()[0].GetGauge().GetValue()
		}
		for _, m := range family.GetMetric() {
			if family.GetName() == "tutti_component_up" {
				up[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	if free <= 0 && runtime.GOOS == "linux" {
		t.Errorf("tutti_data_free_bytes is %f", free)
	}
	if want := map[string]float64{"index": 0, "outbox": 1, "queue": 1, "store": 1}; !maps.Equal(up, want) {
		t.Errorf("tutti_component_up is %v, want %v", up, want)
	}
}

// TestReadyAmidStop: a process that stops says so in /ready, and serves other requests, for server.shutdownDelay.
func TestReadyAmidStop(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{shutdownDelay: 5 * time.Second})
	stopped := make(chan error, 1)
	go func() { stopped <- w.app.Stop(context.WithoutCancel(t.Context())) }()
	w.eventually(wait, func() (bool, string) {
		a, err := w.request(http.MethodGet, "/ready")
		return err == nil && a.status == http.StatusServiceUnavailable && !a.get("ready").Bool() && a.header.Get("Retry-After") != "" &&
			a.get(`reasons.#(=="the process is stopping")`).Exists(), fmt.Sprintf("%s, %v", a.raw, err)
	})
	w.mustRequest(http.MethodGet, "/jobs", http.StatusOK)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	w.app = nil
}

// TestProfiling: profiles are served only on the address that is configured, not on server.listen.
func TestProfiling(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	w.mustRequest(http.MethodGet, "/debug/pprof/heap", http.StatusNotFound)
	if slices.ContainsFunc(w.logs.all(), func(line string) bool { return strings.Contains(line, "profiles are served") }) {
		t.Error("profiles are served by default")
	}
	cfg, err := config.Load("", []string{"TUTTI_SERVER_LISTEN=127.0.0.1:0", "TUTTI_DATA_DIR=" + t.TempDir(), "TUTTI_SERVER_PROFILING=:0"})
	if err != nil {
		t.Fatal(err)
	}
	logs := &logBuffer{}
	a, err := app.New(cfg, app.Options{Logger: slog.New(slog.NewJSONHandler(logs, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	for _, line := range logs.all() {
		var l struct{ Msg, URL string }
		if json.Unmarshal([]byte(line), &l) == nil && l.Msg == "profiles are served" && strings.HasPrefix(l.URL, "http://127.0.0.1:") {
			return
		}
	}
	t.Error("no profiles are served where they are configured")
}
