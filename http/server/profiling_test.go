package server_test

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"tutti/http/server"
	"tutti/internal/core"
)

// TestProfiling: profiles are served on loopback unless a host is named, without the command line; a taken address is an error.
func TestProfiling(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	p, err := server.StartProfiling(t.Context(), ":0", log)
	if err != nil {
		t.Fatal(err)
	}
	addr := p.Addr().(*net.TCPAddr)
	if !addr.IP.IsLoopback() {
		t.Errorf("listens on %s", addr)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for path, want := range map[string]int{"heap": http.StatusOK, "goroutine?debug=1": http.StatusOK, "": http.StatusOK, "cmdline": http.StatusNotFound} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr.String()+"/debug/pprof/"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != want || len(body) == 0 {
			t.Errorf("%s: %d with %d bytes, %v, want %d", path, res.StatusCode, len(body), err, want)
		}
		if path == "heap" && !bytes.HasPrefix(body, []byte{0x1f, 0x8b}) { // gzip
			t.Errorf("the heap profile begins with %q", body[:min(len(body), 8)])
		}
	}
	_, err = server.StartProfiling(t.Context(), addr.String(), log)
	if hint := core.HintOf(err); hint != "choose another address for server.profiling, or leave it empty" {
		t.Errorf("hint %q", hint)
	}
	if core.CodeOf(err) != core.CodeInvalid || !strings.Contains(err.Error(), "listening for profiles on "+addr.String()) {
		t.Errorf("a taken address: %v", err)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	named, err := server.StartProfiling(t.Context(), "0.0.0.0:0", log)
	if err != nil {
		t.Fatal(err)
	}
	if ip := named.Addr().(*net.TCPAddr).IP; !ip.IsUnspecified() {
		t.Errorf("listens on %s, not on what is named", ip)
	}
	if err := named.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
