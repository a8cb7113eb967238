package connection

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
)

// dialTimeout limits a connection, with its TLS handshake.
const dialTimeout = 10 * time.Second

// Config says how brokers are reached. Only Brokers is required.
type Config struct {
	// Key is the configuration key of the connection, such as "ingest.kafka", which errors name.
	Key string
	// Brokers are the host:port of the seed brokers.
	Brokers []string
	// TLS names the files of TLS connections; nil for connections without TLS.
	TLS *tlsconfig.Files
	// SASL are the credentials; the zero value for none.
	SASL SASL
}

// Connection makes the options of clients of one cluster. It is safe for concurrent use.
type Connection struct {
	cfg    Config
	tls    *tlsconfig.Source // nil without TLS
	tokens *tokens           // nil for other mechanisms than OAUTHBEARER
	// last is the outcome of the last connection to a broker: a client retries most errors and then returns only that its time is over.
	last atomic.Pointer[outcome]
}

type outcome struct{ err error }

var _ kgo.HookBrokerConnect = (*Connection)(nil)

// New returns a Connection. It reads the files of TLS and connects to nothing. An error is a *core.Error of CodeInvalid.
func New(cfg Config) (*Connection, error) {
	c := &Connection{cfg: cfg}
	if len(cfg.Brokers) == 0 {
		return nil, core.NewError(core.CodeInvalid, "a Kafka client needs the address of a broker")
	}
	var err error
	if cfg.TLS != nil {
		if c.tls, err = tlsconfig.New(*cfg.TLS); err != nil {
			return nil, err
		}
	}
	if err := cfg.SASL.validate(cfg.Key); err != nil {
		return nil, err
	}
	if cfg.SASL.Mechanism == OAuthBearer {
		if c.tokens, err = newTokens(cfg.SASL.OAuth); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Options returns the options of a client that concern the connection.
func (c *Connection) Options() []kgo.Opt {
	options := []kgo.Opt{kgo.SeedBrokers(c.cfg.Brokers...), kgo.WithHooks(c)}
	if c.tls != nil {
		options = append(options, kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, dialTimeout)
			defer cancel()
			return c.tls.DialContext(ctx, &net.Dialer{}, network, address)
		}))
	}
	if mechanism := c.mechanism(); mechanism != nil {
		options = append(options, kgo.SASL(mechanism))
	}
	return options
}

// OnBrokerConnect implements kgo.HookBrokerConnect. err is of the TLS handshake and of SASL, too.
func (c *Connection) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	c.last.Store(&outcome{err})
}
