package check

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"tutti/internal/app/settings"
	"tutti/internal/base/disk"
	"tutti/internal/config"
	"tutti/internal/core"
)

const subjectIndex = "index"

func indexProbe(cfg config.Config) probe {
	if cfg.Index.URL == "" {
		return func(ctx context.Context) []Finding {
			found := embeddedIndex(ctx, cfg)
			for _, r := range cfg.Repositories {
				found = append(found, mappingFindings(cfg, r, embeddedRefusal, "")...)
			}
			return found
		}
	}
	return func(ctx context.Context) []Finding {
		e, err := newEngine(cfg.Index)
		if err != nil {
			return []Finding{{subjectIndex, StatusFail, core.MessageOf(err), core.HintOf(err)}}
		}
		defer e.close()
		found := e.nodes(ctx)
		if e.node == nil {
			return found
		}
		found = append(found, e.health(ctx)...)
		for _, r := range cfg.Repositories {
			f := e.alias(ctx, r.Code, r.IndexName)
			found = append(found, f)
			if f.Status == StatusOK {
				found = append(found, e.unindexed(ctx, r)...)
			}
			found = append(found, mappingFindings(cfg, r, engineRefusal(ctx, cfg.Index), e.privileges.Template)...)
			found = append(found, rebuildFindings(ctx, cfg.Index, r)...)
		}
		return found
	}
}

const (
	// readyTimeout bounds the request to the running process, maxReadyBytes its response.
	readyTimeout  = 5 * time.Second
	maxReadyBytes = 1 << 20
	// neverIndexed is in the reason that GET /ready returns for a repository of which no run has filled the index.
	neverIndexed = ": never indexed; "
)

// embeddedIndex returns the findings on the embedded index. Only the process that has it open knows its content, so
// embeddedIndex calls GET /ready of that process, unless it serves TLS or listens on a port that is not configured.
func embeddedIndex(ctx context.Context, cfg config.Config) []Finding {
	dir := settings.IndexDir(cfg)
	found := []Finding{folder(subjectIndex, dir, indexLock)}
	host, port, err := net.SplitHostPort(cfg.Server.Listen)
	if _, held := disk.LockHolder(filepath.Join(dir, indexLock)); !held || err != nil || port == "0" || cfg.Server.TLS.CertFile != "" {
		return found
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	for _, reason := range readyReasons(ctx, "http://"+net.JoinHostPort(host, port)+cfg.Server.BasePath+"/ready") {
		if repository, hint, ok := strings.Cut(reason, neverIndexed); ok {
			found = append(found, Finding{subjectIndex, StatusWarn, repository + " was never indexed", hint})
		}
	}
	return found
}

// readyReasons returns the reasons of a running process's GET /ready, nil when it does not answer.
func readyReasons(ctx context.Context, url string) []string {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil
	}
	defer func() { _ = res.Body.Close() }()
	var body struct {
		Reasons []string `json:"reasons"`
	}
	if json.NewDecoder(io.LimitReader(res.Body, maxReadyBytes)).Decode(&body) != nil {
		return nil
	}
	return body.Reasons
}
