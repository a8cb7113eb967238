package natsconn

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/core"
)

// hintRights is for a user who lacks a right. With these everything works; the guide has a smaller set.
const hintRights = "grant the user publish permission on $JS.API.>, $JS.ACK.>, $KV.tutti_jobs.> and tutti.>, subscribe permission on _INBOX.> and " +
	"tutti.serves.>, and responses"

const (
	hintJetStream = "start nats-server with -js, or add jetstream {} to its configuration"
	hintAccount   = "enable JetStream for the account of this user"
)

// ServerState is the result of ProbeServer for one server.
type ServerState struct {
	// ID identifies the server.
	ID, Version, Cluster string
	// Streams is the number of the account's streams; MaxStreams and MaxBytes limit them and their storage, 0 or less for no limit.
	Streams, MaxStreams int
	MaxBytes            int64
	// Limited are those of cfg.Streams that the next start changes, because an earlier version of tutti has set them up (Limited).
	Limited []string
	// Unstored is why the existing ones of cfg.Streams did not store a probe, of CodeUnavailable; Unprobed why that could not be checked.
	Unstored, Unprobed error
}

// ProbeServer connects to the server at cfg.URL, reads the JetStream state of the account, stores in those of cfg.Streams that exist the probe
// that every process of tutti stores there, and disconnects. It changes nothing else. Errors,
// whose messages follow the server's name: CodeUnavailable when the server does not answer, with the cause in the chain; CodeUpstream
// when something else answers; CodeUnauthenticated for wrong credentials; CodeForbidden when the user may not use JetStream;
// CodeUnsupported when JetStream is off or the server is too old.
func ProbeServer(ctx context.Context, cfg ConnConfig) (state ServerState, err error) {
	timeout := CallTimeout
	if end, ok := ctx.Deadline(); ok {
		timeout = max(min(timeout, time.Until(end)/2), time.Millisecond) // once for the dial, once for the greeting
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var dialed *greetedConn
	var dialErr error
	opts := []nats.Option{
		nats.Name("tutti check"), nats.Timeout(timeout), nats.NoReconnect(), nats.IgnoreDiscoveredServers(), nats.SkipHostLookup(),
		// nats.Connect replaces some errors of its dialer by ErrNoServers.
		nats.SetCustomDialer(dialFunc(func(network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{Timeout: timeout}).DialContext(ctx, network, address)
			if dialErr = err; err != nil {
				return nil, err
			}
			dialed = &greetedConn{Conn: conn}
			return dialed, nil
		})),
		// A refused request is not answered.
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { cancel(err) }),
	}
	secured, err := cfg.options()
	if err != nil {
		return state, &core.Error{Code: core.CodeInvalid, Message: "is not asked: " + core.MessageOf(err), Hint: core.HintOf(err), Err: causeOf(err)}
	}
	opts = append(opts, secured...)
	nc, err := nats.Connect(cfg.URL, opts...)
	switch {
	case dialErr != nil:
		return state, unreachable(dialErr)
	case err != nil && dialed != nil && !strings.HasPrefix(cfg.URL, "ws") && !dialed.speaksNATS():
		return state, &core.Error{
			Code: core.CodeUpstream, Message: "accepts connections, but does not speak NATS", Err: err,
			Hint: "check the port: NATS serves clients at port 4222 by default; its monitoring port and HTTP or TLS proxies do not work",
		}
	case err != nil && cfg.closedAfterTLS(err) && dialed.verifiesClients():
		reason, hint := cfg.TLS.ClientRefused()
		return state, &core.Error{Code: core.CodeConflict, Message: "cannot be used: " + reason, Hint: hint, Err: err}
	case err != nil:
		return state, cfg.handshakeError(err)
	}
	defer nc.Close()
	state.ID, state.Version, state.Cluster = nc.ConnectedServerId(), nc.ConnectedServerVersion(), nc.ConnectedClusterName()
	if err := tooOld(state.Version); err != nil {
		return state, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return state, core.WrapError(core.CodeInternal, "cannot be probed", err)
	}
	account, err := js.AccountInfo(ctx)
	if err != nil {
		return state, accountError(err, context.Cause(ctx))
	}
	state.Streams, state.MaxStreams, state.MaxBytes = account.Streams, account.Limits.MaxStreams, account.Limits.MaxStore
	state.Unstored, state.Unprobed = probeStorage(ctx, nc, js, cfg, &state)
	return state, nil
}

// Limited reports whether an earlier version of tutti has set up the stream of cfg with a limit of one message for each subject, which the
// next start ends.
func Limited(stream, cfg jetstream.StreamConfig) bool {
	return stream.MaxMsgsPerSubject == 1 && cfg.MaxMsgsPerSubject != 1
}

// probeStorage returns why streams that exist do not store a probe, or why that could not be checked. It sets Limited of state.
func probeStorage(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, cfg ConnConfig, state *ServerState) (unstored, unprobed error) {
	of := cfg
	of.Streams = nil
	for _, s := range cfg.Streams {
		stream, err := js.Stream(ctx, s.Name)
		switch {
		case err == nil:
			of.Streams = append(of.Streams, s)
			if Limited(stream.CachedInfo().Config, s) {
				state.Limited = append(state.Limited, s.Name)
			}
		case !errors.Is(err, jetstream.ErrStreamNotFound): // it is made at the start
			return nil, cmp.Or(context.Cause(ctx), err)
		}
	}
	c := &Conn{NC: nc, JS: js, Log: slog.New(slog.DiscardHandler), Durability: newDurability(), cfg: of}
	err := c.Probe(ctx)
	if errors.Is(err, errProbeUndelivered) || err != nil && ctx.Err() != nil {
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	return err, nil
}

// CheckCredentials returns CodeInvalid, with the key, for a .creds file that cannot be used.
func CheckCredentials(file string) error {
	var opts nats.Options
	err := nats.UserCredentials(file)(&opts)
	if err == nil {
		_, err = opts.UserJWT()
	}
	message := file + " does not contain a user JWT and an NKEY seed"
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		message = unreadableFile(file, err)
	} else if err == nil {
		_, err = opts.SignatureCB([]byte{0})
	}
	if err == nil {
		return nil
	}
	return &core.Error{
		Code: core.CodeInvalid, Message: securityKey + ".credentialsFile: " + message, Hint: "set it to the .creds file of a NATS user", Err: err,
	}
}

// unreadableFile says that a file cannot be read, without its name twice.
func unreadableFile(file string, err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return file + " cannot be read: " + err.Error()
}

type dialFunc func(network, address string) (net.Conn, error)

// Dial implements nats.CustomDialer.
func (d dialFunc) Dial(network, address string) (net.Conn, error) { return d(network, address) }

// greetedConn keeps the first bytes that the server sent: of one that speaks NATS its INFO.
type greetedConn struct {
	net.Conn
	first []byte
}

const (
	greeting = "INFO {"
	// maxGreeting is the size of first, in bytes. An INFO has about 500, and some 20 more for each server of a cluster.
	maxGreeting = 16 << 10
)

// Read implements net.Conn.
func (c *greetedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if missing := maxGreeting - len(c.first); missing > 0 && bytes.IndexByte(c.first, '\n') < 0 {
		c.first = append(c.first, b[:min(n, missing)]...)
	}
	return n, err
}

func (c *greetedConn) speaksNATS() bool { return bytes.HasPrefix(c.first, []byte(greeting)) }

// verifiesClients reports whether the server's INFO says that it requires a client certificate.
func (c *greetedConn) verifiesClients() bool {
	var info struct {
		TLSVerify bool `json:"tls_verify"`
	}
	line, _, _ := bytes.Cut(c.first, []byte("\n"))
	return c.speaksNATS() && json.Unmarshal(line[len("INFO "):], &info) == nil && info.TLSVerify
}

func unreachable(err error) error {
	return core.WrapError(core.CodeUnavailable, "does not answer", err)
}

// handshakeError returns the error of a server that was reached and did not accept the connection.
func (cfg ConnConfig) handshakeError(err error) error {
	if refused(err) {
		return &core.Error{
			Code: core.CodeUnauthenticated, Message: "does not accept the credentials", Err: err,
			Hint: "check " + cfg.key(),
		}
	}
	if message, hint := cfg.failure(err); message != "" {
		return &core.Error{Code: core.CodeConflict, Message: "cannot be used: " + strings.TrimPrefix(message, unusableServer), Hint: hint, Err: err}
	}
	if text, reported := strings.CutPrefix(err.Error(), "nats: "); reported && !errors.Is(err, nats.ErrTimeout) {
		return core.WrapError(core.CodeConflict, "reports "+text, err)
	}
	return unreachable(err)
}

// accountError returns the error of a request for the account's state. cause is why its context ended, if it did.
func accountError(err, cause error) error {
	api, answered := errors.AsType[*jetstream.APIError](err)
	switch {
	case errors.Is(cause, nats.ErrPermissionViolation):
		return &core.Error{
			Code: core.CodeForbidden, Message: "does not let this user use JetStream", Err: cause,
			Hint: hintRights,
		}
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled):
		return &core.Error{
			Code: core.CodeUnsupported, Message: "has no JetStream", Err: err,
			Hint: hintJetStream,
		}
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return &core.Error{
			Code: core.CodeUnsupported, Message: "does not let this account use JetStream", Err: err,
			Hint: hintAccount,
		}
	case answered:
		return core.WrapError(core.CodeConflict, "reports "+api.Description, err)
	default:
		return unreachable(err)
	}
}
