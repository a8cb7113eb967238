package kafka_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"tutti/ingest/kafka"
)

// freezing are listeners of brokers that accept connections and read requests, but answer none while they are frozen.
type freezing struct{ frozen atomic.Bool }

type freezingListener struct {
	net.Listener
	*freezing
}

type freezingConn struct {
	net.Conn
	*freezing
}

func (f *freezing) listen(network, address string) (net.Listener, error) {
	l, err := net.Listen(network, address) //nolint:noctx // the test closes it
	return freezingListener{l, f}, err
}

// Accept implements net.Listener.
func (l freezingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return freezingConn{conn, l.freezing}, err
}

// Write drops what is written while the brokers are frozen.
func (c freezingConn) Write(b []byte) (int, error) {
	if c.frozen.Load() {
		return io.Discard.Write(b)
	}
	return c.Conn.Write(b)
}

// TestStopWithFrozenBroker: a stop does not use up its timeout when the brokers accept connections and requests but do not answer, from the
// start or since they have delivered messages, which may not be committed then.
func TestStopWithFrozenBroker(t *testing.T) {
	for name, from := range map[string]func(*testing.T, *freezing, broker, *kafka.Reader, *handler){
		"from the start": func(t *testing.T, _ *freezing, _ broker, r *kafka.Reader, _ *handler) {
			eventually(t, "a failure", func() bool { return r.Health() != nil })
		},
		"later": func(t *testing.T, f *freezing, b broker, _ *kafka.Reader, h *handler) {
			f.frozen.Store(false)
			b.produce(t, 1, numbered("v", 5)...)
			eventually(t, "messages", func() bool { return len(h.values()) == 5 })
			f.frozen.Store(true)
		},
		"before a commit": func(t *testing.T, f *freezing, b broker, r *kafka.Reader, h *handler) {
			produced := make(chan struct{})
			h.set(func([]string) error {
				<-produced // what brokers do not acknowledge is sent again without an end
				f.frozen.Store(true)
				return nil
			})
			f.frozen.Store(false)
			eventually(t, "health", func() bool { return r.Health() == nil })
			b.produce(t, 1, numbered("v", 5)...)
			close(produced)
			eventually(t, "messages", func() bool { return len(h.values()) > 0 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &freezing{}
			_, b := fake(t, 1, kfake.ListenFn(f.listen))
			f.frozen.Store(true)
			h := &handler{}
			cfg := b.config()
			cfg.CommitTimeout, cfg.RebalanceTimeout = time.Minute, 2*time.Minute
			r, err := kafka.New(cfg, h)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			from(t, f, b, r, h)
			ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
			defer cancel()
			if err := errors.Join(r.Stop(ctx), ctx.Err()); err != nil {
				t.Errorf("the stop used up its timeout: %v", err)
			}
		})
	}
}
