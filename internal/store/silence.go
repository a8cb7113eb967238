package store

import (
	"context"
	"net"
	"sync"
	"time"
)

// postgresSilence is how long PostgreSQL may take for the next bytes of an answer, or not take those of a question, unless
// Config says otherwise. A network that swallows everything without closing the connection would keep its caller for ever.
const postgresSilence = 30 * time.Second

// dialer opens connections whose reads and writes end after some silence.
type dialer struct {
	net.Dialer
	silence time.Duration
}

// DialContext connects.
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.Dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &attentiveConn{Conn: conn, silence: d.silence}, nil
}

// attentiveConn ends a read or write after some silence, or at the deadline that its user has set, whichever is first.
type attentiveConn struct {
	net.Conn
	silence time.Duration

	mu          sync.Mutex
	read, write time.Time // deadlines that were set; zero for none
}

// Read reads.
func (c *attentiveConn) Read(b []byte) (int, error) {
	c.mu.Lock()
	err := c.Conn.SetReadDeadline(c.sooner(c.read))
	c.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// Write writes.
func (c *attentiveConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	err := c.Conn.SetWriteDeadline(c.sooner(c.write))
	c.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// sooner returns the end of the silence that begins now, or a deadline that is before it.
func (c *attentiveConn) sooner(deadline time.Time) time.Time {
	end := time.Now().Add(c.silence)
	if !deadline.IsZero() && deadline.Before(end) {
		return deadline
	}
	return end
}

// SetDeadline sets both deadlines, also for what is under way.
func (c *attentiveConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read, c.write = t, t
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline sets that of reads.
func (c *attentiveConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = t
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline sets that of writes.
func (c *attentiveConn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write = t
	return c.Conn.SetWriteDeadline(t)
}
