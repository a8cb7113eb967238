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
	"sync/atomic"
	"testing"
	"time"

	"tutti/http/system"
	"tutti/internal/app"
	"tutti/internal/config"
	"tutti/internal/core"
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

// guardedIndex is an index whose engine has a known defect and whose indices do not return documents as they were written, until told otherwise.
type guardedIndex struct {
	index.Index
	defect, unsuitable atomic.Pointer[string]
}

// Defect returns the defect.
func (g *guardedIndex) Defect(context.Context) string {
	if text := g.defect.Load(); text != nil {
		return *text
	}
	return ""
}

// CheckStorage returns core.ErrIndexUnsuitable.
func (g *guardedIndex) CheckStorage(context.Context, string) error {
	if text := g.unsuitable.Load(); text != nil {
		return &core.Error{Code: core.CodeConflict, Message: *text, Err: core.ErrIndexUnsuitable}
	}
	return nil
}

// TestReadyGuards: /ready names the defect of an engine, also of one without repositories, and the pause of a repository whose index does not
// return documents as they were written, from the start or once its alias stands for such an index; both end with their cause.
func TestReadyGuards(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x, err := embedded.Open(embedded.Config{Dir: filepath.Join(dir, "elsewhere")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	file := "dataDir: " + dir + "\nserver: {listen: '127.0.0.1:0'}\nrepositories: [{code: a, type: local, indexName: a}]"
	cfg, err := config.Parse([]byte(file), nil)
	if err != nil {
		t.Fatal(err)
	}
	guarded := &guardedIndex{Index: x}
	guarded.defect.Store(new("Elasticsearch 9.5.1 is bad"))
	guarded.unsuitable.Store(new("the index a-1 cannot be used"))
	a, err := app.New(cfg, app.Options{Index: guarded})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Stop(context.WithoutCancel(t.Context())) })
	eventually(t, wait, func() (bool, string) {
		h := a.Health(t.Context())
		return slices.Contains(h.Reasons, "index: Elasticsearch 9.5.1 is bad") && h.Components["index"] == system.ComponentDegraded &&
			len(h.Paused) == 1 && strings.Contains(h.Paused[0].Reason, "the index a-1 cannot be used"), fmt.Sprintf("%+v", h)
	})
	guarded.unsuitable.Store(nil)
	guarded.defect.Store(nil)
	eventually(t, wait, func() (bool, string) {
		h := a.Health(t.Context())
		return len(h.Paused) == 0 && h.Components["index"] == system.ComponentUp, fmt.Sprintf("%+v", h)
	})
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
