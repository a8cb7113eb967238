package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/core"
	"tutti/internal/queue/natsconn"
)

// ServerProbe is what Probe found about one server.
type ServerProbe struct {
	// URL is the server's, as configured; it may contain a password.
	URL string
	natsconn.ServerState
	// Err is nil for a server that a Queue can use. Its code and message are those of natsconn.ProbeServer, or CodeUnsupported for a
	// server with which cfg.Replicas is impossible or an account that may not have enough streams.
	Err error
}

// Probe examines each server of cfg.URL at the same time, in the order of the URL. It changes nothing but the probes of the streams. Its own error is CodeInvalid, for a
// credentials file that cannot be used.
func Probe(ctx context.Context, cfg Config) ([]ServerProbe, error) {
	if cfg.Security.CredentialsFile != "" {
		if err := natsconn.CheckCredentials(cfg.Security.CredentialsFile); err != nil {
			return nil, err
		}
	}
	var found []ServerProbe
	for url := range strings.SplitSeq(cfg.URL, ",") {
		if url = strings.TrimSpace(url); url != "" {
			found = append(found, ServerProbe{URL: url})
		}
	}
	var work sync.WaitGroup
	for i := range found {
		work.Go(func() {
			p := &found[i]
			p.ServerState, p.Err = natsconn.ProbeServer(ctx, natsconn.ConnConfig{URL: p.URL, Security: cfg.Security, Streams: cfg.streamConfigs()})
			if p.Err == nil {
				p.Err = cfg.fits(p.ServerState)
			}
		})
	}
	work.Wait()
	return found, nil
}

// Limited returns the names of the streams in the folder of an embedded queue that the next start changes (natsconn.Limited). It only reads
// files, and may be called while a process uses the folder.
func Limited(dir string) ([]string, error) {
	var names []string
	for _, cfg := range (Config{}).streamConfigs() {
		raw, err := os.ReadFile(filepath.Join(dir, "jetstream", "$G", "streams", cfg.Name, "meta.inf"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var stored jetstream.StreamConfig
		if err == nil {
			err = json.Unmarshal(raw, &stored)
		}
		if err != nil {
			return nil, core.WrapError(core.CodeUnavailable, "reading the configuration of the stream "+cfg.Name, err)
		}
		if natsconn.Limited(stored, cfg) {
			names = append(names, cfg.Name)
		}
	}
	return names, nil
}

// fits returns an error when the streams cannot be created on a server.
func (c Config) fits(s natsconn.ServerState) error {
	streams := len(c.streamConfigs())
	switch {
	case c.Replicas > 1 && s.Cluster == "":
		return &core.Error{
			Code: core.CodeUnsupported, Message: fmt.Sprintf("is not in a cluster, but queue.replicas is %d", c.Replicas),
			Hint: "set queue.replicas to 1, or queue.url to a cluster's",
		}
	case s.MaxStreams > 0 && s.MaxStreams < streams:
		return &core.Error{
			Code: core.CodeUnsupported, Hint: "raise the account's stream limit",
			Message: fmt.Sprintf("lets the account have %d streams at most, but tutti needs %d", s.MaxStreams, streams),
		}
	default:
		return nil
	}
}

// Monitor returns what the servers of cfg.URL report to their operator at the addresses of cfg.MonitoringURL, and an error for each address that
// cannot be used, whose message begins with the address.
func Monitor(ctx context.Context, cfg Config) (reports []natsconn.Monitored, failed []error) {
	for address := range strings.SplitSeq(cfg.MonitoringURL, ",") {
		if address = strings.TrimSpace(address); address == "" {
			continue
		}
		found, err := natsconn.Monitor(ctx, address, cfg.Security.TLS)
		if err != nil {
			host := "its address"
			if u, parseErr := url.Parse(address); parseErr == nil {
				host = u.Host
			}
			failed = append(failed, &core.Error{Code: core.CodeOf(err), Message: host + " " + core.MessageOf(err), Hint: core.HintOf(err), Err: errors.Unwrap(err)})
			continue
		}
		reports = append(reports, found...)
	}
	return reports, failed
}
