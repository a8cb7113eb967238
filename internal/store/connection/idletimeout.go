package connection

import (
	"context"
	"net"
	"sync"
	"time"
)

// Dialer opens connections whose reads and writes time out when nothing comes or goes for IdleTimeout: a network that drops packets without
// closing the connection would block the caller forever.
type Dialer struct {
	net.Dialer

	IdleTimeout time.Duration
}

// DialContext opens a connection.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.Dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &timeoutConn{Conn: conn, idleTimeout: d.IdleTimeout}, nil
}

// timeoutConn ends a read or write after the idle timeout or at the deadline set by its user, whichever is first.
type timeoutConn struct {
	net.Conn
	idleTimeout time.Duration

	mu          sync.Mutex
	read, write time.Time // deadlines set by the user; zero for none
}

// Read reads up to the earlier deadline.
func (c *timeoutConn) Read(b []byte) (int, error) {
	c.mu.Lock()
	err := c.Conn.SetReadDeadline(c.earlierDeadline(c.read))
	c.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// Write writes up to the earlier deadline.
func (c *timeoutConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	err := c.Conn.SetWriteDeadline(c.earlierDeadline(c.write))
	c.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// earlierDeadline returns the end of an idle timeout that starts now, or deadline when that is earlier.
func (c *timeoutConn) earlierDeadline(deadline time.Time) time.Time {
	end := time.Now().Add(c.idleTimeout)
	if !deadline.IsZero() && deadline.Before(end) {
		return deadline
	}
	return end
}

// SetDeadline sets both deadlines, including those of calls in flight.
func (c *timeoutConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read, c.write = t, t
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline sets the deadline of reads.
func (c *timeoutConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = t
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline sets the deadline of writes.
func (c *timeoutConn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write = t
	return c.Conn.SetWriteDeadline(t)
}
