package storetest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Relay passes TCP connections on to a server. It can be down, as a server is that restarts, and blocked, as one that is frozen.
type Relay struct {
	target   string
	listener net.Listener
	work     sync.WaitGroup

	mu    sync.Mutex
	down  bool
	conns map[net.Conn]struct{}
	// passing is closed while the relay is not blocked.
	passing chan struct{}
	// refused has an element after a connection was refused.
	refused chan struct{}
	// sent is the number of bytes for the server; at limit of them, unless it is 0, the relay blocks and closes reached.
	sent, limit int64
	reached     chan struct{}
}

// NewRelay returns a Relay to a target, until the test ends.
func NewRelay(t testing.TB, target string) *Relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed with the test
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{target: target, listener: l, conns: map[net.Conn]struct{}{}, refused: make(chan struct{}, 1), passing: make(chan struct{})}
	close(r.passing)
	r.work.Go(r.accept)
	t.Cleanup(func() {
		_ = l.Close()
		r.Down()
		r.Unblock()
		r.work.Wait()
	})
	return r
}

// Addr returns the address that it listens on.
func (r *Relay) Addr() string { return r.listener.Addr().String() }

// Down closes all connections, and new ones at once.
func (r *Relay) Down() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = true
	for c := range r.conns {
		_ = c.Close()
	}
}

// Up passes new connections on.
func (r *Relay) Up() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = false
	select {
	case <-r.refused:
	default:
	}
}

// Block passes nothing on until Unblock. New connections are accepted.
func (r *Relay) Block() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.passing:
		r.passing = make(chan struct{})
	default:
	}
}

// Unblock passes on again, first what arrived since. A relay that is not blocked stays so.
func (r *Relay) Unblock() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.passing:
	default:
		close(r.passing)
	}
}

// BlockAfter counts the bytes for the server from 0 again, and blocks once there were n, with 0 never; the channel that it returns is closed then.
func (r *Relay) BlockAfter(n int64) (reached <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent, r.limit, r.reached = 0, n, make(chan struct{})
	return r.reached
}

// Sent returns the number of bytes for the server since the start or the last BlockAfter.
func (r *Relay) Sent() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent
}

// gated is a writer to a connection that waits while the relay is blocked.
type gated struct {
	io.Writer
	relay *Relay
	// server is set for a connection to the server.
	server bool
}

// Write implements io.Writer.
func (g gated) Write(b []byte) (int, error) {
	if g.server {
		g.relay.count(len(b))
	}
	g.relay.mu.Lock()
	passing := g.relay.passing
	g.relay.mu.Unlock()
	<-passing
	return g.Writer.Write(b)
}

// count counts bytes for the server, and blocks at the limit.
func (r *Relay) count(n int) {
	r.mu.Lock()
	r.sent += int64(n)
	full := r.limit > 0 && r.sent >= r.limit
	if full {
		r.limit = 0
		close(r.reached)
	}
	r.mu.Unlock()
	if full {
		r.Block()
	}
}

// Refused returns a channel that receives after a connection was refused since the last Up.
func (r *Relay) Refused() <-chan struct{} { return r.refused }

func (r *Relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.connect(client)
	}
}

func (r *Relay) connect(client net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down {
		_ = client.Close()
		select {
		case r.refused <- struct{}{}:
		default:
		}
		return
	}
	server, err := net.Dial("tcp", r.target) //nolint:noctx // on this machine
	if err != nil {
		_ = client.Close()
		return
	}
	r.conns[client], r.conns[server] = struct{}{}, struct{}{}
	r.work.Go(func() { r.pass(gated{client, r, false}, client, server) })
	r.work.Go(func() { r.pass(gated{server, r, true}, server, client) })
}

// pass copies until either connection ends.
func (r *Relay) pass(out io.Writer, to, from net.Conn) {
	_, _ = io.Copy(out, from)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range []net.Conn{to, from} {
		_ = c.Close()
		delete(r.conns, c)
	}
}
