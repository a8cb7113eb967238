package natsconn

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
)

const (
	// maxMonitorBytes limits a response of a monitoring address.
	maxMonitorBytes = 1 << 20
	// monitorQuiet is how long further servers may take to answer a request to all of them.
	monitorQuiet = 500 * time.Millisecond
)

// Monitored is what a server reports to its operator.
type Monitored struct {
	// ID is the server's, as its clients see it. Name is for messages.
	ID, Name string
	// SyncAlways is set if the server syncs its files at each write, and otherwise does so once in SyncInterval.
	SyncAlways   bool
	SyncInterval time.Duration
	// Frozen are the streams that store nothing until the server is restarted, with the I/O error.
	Frozen []string
}

// jsz and healthz are the parts of the server's reports that are read (JSInfo and HealthStatus in server/monitor.go of nats-server).
type jsz struct {
	ID     string `json:"server_id"`
	Config struct {
		SyncAlways   bool          `json:"sync_always"`
		SyncInterval time.Duration `json:"sync_interval"`
	} `json:"config"`
}

type healthz struct {
	Errors []struct {
		Stream string `json:"stream"`
		Error  string `json:"error"`
	} `json:"errors"`
}

func monitored(name string, js jsz, health healthz) Monitored {
	m := Monitored{ID: js.ID, Name: name, SyncAlways: js.Config.SyncAlways, SyncInterval: js.Config.SyncInterval}
	for _, e := range health.Errors {
		if e.Stream != "" && strings.Contains(e.Error, "write error") {
			m.Frozen = append(m.Frozen, e.Error)
		}
	}
	return m
}

// Monitor returns what servers report to their operator: the one with an HTTP monitoring address, or for a nats or tls URL with a user of the
// system account all of the cluster. It changes nothing. An error is a *core.Error, whose message follows the address.
func Monitor(ctx context.Context, address string, files tlsconfig.Files) ([]Monitored, error) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, core.WrapError(core.CodeInvalid, "is not a URL", err)
	}
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	if at.Scheme == "http" || at.Scheme == "https" {
		return monitorHTTP(ctx, at, files)
	}
	return monitorSystem(ctx, address, files)
}

func monitorHTTP(ctx context.Context, at *url.URL, files tlsconfig.Files) ([]Monitored, error) {
	source, err := tlsconfig.New(files)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: source.RoundTripper(&http.Transport{DisableKeepAlives: true})}
	get := func(path, query string, into any) error {
		u := at.JoinPath(path)
		u.RawQuery = query
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return err
		}
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = res.Body.Close() }()
		return json.NewDecoder(io.LimitReader(res.Body, maxMonitorBytes)).Decode(into) // /healthz has status 503 for an unhealthy server
	}
	var js jsz
	var health healthz
	err = errors.Join(get("jsz", "", &js), get("healthz", "details=true", &health))
	switch {
	case js.ID != "":
		return []Monitored{monitored(at.Host, js, health)}, nil
	case errors.As(err, new(*url.Error)):
		reason, hint := files.Failure(err)
		return nil, &core.Error{Code: core.CodeUnavailable, Message: "does not answer: " + reason, Hint: hint, Err: err}
	default:
		return nil, &core.Error{
			Code: core.CodeUpstream, Message: "is not the monitoring address of a nats-server with JetStream", Err: err,
			Hint: "set it to the address of http_port, 8222 in most configurations",
		}
	}
}

func monitorSystem(ctx context.Context, address string, files tlsconfig.Files) ([]Monitored, error) {
	security := Security{TLS: files}
	opts, err := security.options()
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect(address, append(opts, nats.Name("tutti check"), nats.Timeout(CallTimeout), nats.NoReconnect())...)
	if errors.Is(err, nats.ErrNoServers) {
		return nil, unreachable(err)
	}
	if err != nil {
		return nil, ConnConfig{Security: security}.handshakeError(err)
	}
	defer nc.Close()
	reports, states := map[string]jsz{}, map[string]healthz{}
	names := map[string]string{}
	err = errors.Join(
		fromAll(ctx, nc, "JSZ", func(id, name string, js jsz) { js.ID, names[id] = id, name; reports[id] = js }),
		fromAll(ctx, nc, "HEALTHZ", func(id, _ string, h healthz) { states[id] = h }))
	var all []Monitored
	for id, js := range reports {
		all = append(all, monitored(names[id], js, states[id]))
	}
	if len(all) == 0 {
		return nil, &core.Error{
			Code: core.CodeForbidden, Message: "does not answer as to the system account", Err: err,
			Hint: "use a user of the system account, which may publish to $SYS.REQ.SERVER.PING.* and subscribe to _INBOX.>",
		}
	}
	return all, nil
}

// fromAll requests a report of all servers of a cluster, and calls each with those that come.
func fromAll[T any](ctx context.Context, nc *nats.Conn, report string, each func(id, name string, data T)) error {
	inbox := nc.NewInbox()
	replies, err := nc.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	defer func() { _ = replies.Unsubscribe() }()
	if err := nc.PublishRequest("$SYS.REQ.SERVER.PING."+report, inbox, []byte(`{"details":true}`)); err != nil {
		return err
	}
	for wait := CallTimeout / 2; ; wait = monitorQuiet {
		next, cancel := context.WithTimeout(ctx, wait)
		message, err := replies.NextMsgWithContext(next)
		cancel()
		if err != nil {
			return err
		}
		var answer struct {
			Server struct {
				ID   string `json:"id"`
				Name string `json:"name"`
			} `json:"server"`
			Data T `json:"data"`
		}
		if err := json.Unmarshal(message.Data, &answer); err != nil {
			return err
		}
		each(answer.Server.ID, answer.Server.Name, answer.Data)
	}
}
