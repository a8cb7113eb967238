package server

import (
	"cmp"
	"container/list"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// mostConnections is the default limit if the process may open enough files.
	mostConnections = 8192
	// Over the limit, limit/monitoringShare connections are accepted for monitoring only, but at least minMonitoring and at most
	// maxMonitoring.
	minMonitoring, maxMonitoring, monitoringShare = 2, 64, 16
	// probeTimeout is how long a connection over the limit may wait for a monitoring request before a newer one may replace it.
	probeTimeout = 5 * time.Second
	// arrivalTimeout is how long a request may take to arrive before its connection may be replaced at a limit.
	arrivalTimeout = time.Second
	// maxStreams is the maximum number of concurrent requests of an HTTP/2 connection.
	maxStreams = 32
	// maxReceived is the maximum number of bytes an HTTP/2 connection has received that no handler has read yet.
	maxReceived = 256 << 10
	// networkBits is the length of the IPv6 prefix that counts as one client.
	networkBits = 64
	// limitTotal and limitAddress are the values of the label limit.
	limitTotal, limitAddress = "total", "address"
)

// connLimits limits the connections of a Server. At the limit a new connection replaces the one that has been idle longest, or else
// one of the address with the most connections whose request has been arriving for too long. If all connections serve requests, the
// new one is accepted over the limit, for monitoring only; of those few the newest replaces the oldest, so that half-sent requests
// cannot block a probe.
type connLimits struct {
	total, perAddress, monitoring int
	proxies                       []netip.Prefix
	metrics                       *Metrics

	mu sync.Mutex
	// open counts the connections within the limit; from counts them by address, without those of proxies.
	open int
	from map[netip.Addr]int
	// idle are the idle connections within the limit, the longest idle one first.
	idle list.List
	// arriving are the connections within the limit whose request is incomplete, the oldest request first.
	arriving list.List
	// overLimit are the connections over the limit, the oldest first.
	overLimit list.List
}

// newConnLimits returns the limits of a Server in a process that may open files files.
func newConnLimits(cfg Config, files int) *connLimits {
	l := &connLimits{
		total: cfg.MaxConnections, perAddress: cfg.MaxConnectionsPerAddress,
		proxies: cfg.TrustedProxies, metrics: cfg.Metrics, from: map[netip.Addr]int{},
	}
	if l.total == 0 {
		l.total = min(mostConnections, files/2)
	}
	l.monitoring = min(max(l.total/monitoringShare, minMonitoring), maxMonitoring)
	l.total = max(min(l.total, files/4*3-l.monitoring), 1) // the rest is for other file descriptors
	if l.perAddress == 0 {
		l.perAddress = max(l.total/2, 1)
	}
	return l
}

// admit counts a new connection, and reports whether it may be used.
func (l *connLimits) admit(c *Conn) bool {
	c.limits, c.address = l, l.addressOf(c.RemoteAddr())
	l.mu.Lock()
	replaced := l.add(c)
	l.metrics.connections(l.open + l.overLimit.Len())
	l.mu.Unlock()
	if replaced != nil {
		_ = replaced.Conn.Close()
	}
	return replaced != c
}

// addressOf returns the address or network that a connection counts for, the zero Addr if it is not counted.
func (l *connLimits) addressOf(remote net.Addr) netip.Addr {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	address := tcp.AddrPort().Addr().Unmap().WithZone("")
	if IsAmong(l.proxies, address) {
		return netip.Addr{}
	}
	return ClientNetwork(address)
}

// IsAmong reports whether an address is in one of the networks.
func IsAmong(networks []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(address) })
}

// ClientNetwork returns the network that counts as one client: an IPv4 address, or a /64 network of IPv6.
func ClientNetwork(address netip.Addr) netip.Addr {
	if network, err := address.Prefix(networkBits); err == nil && address.Is6() {
		return network.Addr()
	}
	return address
}

// add adds a new connection to the lists and returns the connection to close, which may be c itself. l is locked.
func (l *connLimits) add(c *Conn) (replaced *Conn) {
	limit := ""
	switch {
	case c.address.IsValid() && l.from[c.address] >= l.perAddress:
		limit = limitAddress
		replaced = firstOf(&l.idle, func(other *Conn) bool { return other.address == c.address })
		if replaced == nil {
			replaced = firstOf(&l.arriving, func(other *Conn) bool { return other.address == c.address && other.late() })
		}
	case l.open >= l.total:
		limit = limitTotal
		replaced = firstOf(&l.idle, func(*Conn) bool { return true })
		if replaced == nil {
			replaced = l.slowest(c)
		}
	}
	if limit != "" && replaced == nil {
		l.metrics.limited(limit)
		c.overLimit = true
		if l.overLimit.Len() >= l.monitoring {
			if replaced = firstOf(&l.overLimit, func(other *Conn) bool { return time.Since(other.probed) > probeTimeout }); replaced == nil {
				return c
			}
			l.remove(replaced)
		}
		c.listed = l.overLimit.PushBack(c)
		return replaced
	}
	if replaced != nil {
		l.remove(replaced)
	}
	l.open++
	if c.address.IsValid() {
		l.from[c.address]++
	}
	c.listed = l.idle.PushBack(c)
	return replaced
}

// slowest returns the connection with the oldest late request of one address: the one with the most connections if it has more than
// c's address, else c's. It returns nil if there is none. l is locked.
func (l *connLimits) slowest(c *Conn) *Conn {
	var slowest, own *Conn
	most := l.from[c.address]
	for e := l.arriving.Front(); e != nil; e = e.Next() {
		other, _ := e.Value.(*Conn)
		if !other.late() {
			break // so are all that follow
		}
		if n := l.from[other.address]; n > most {
			slowest, most = other, n
		}
		if own == nil && other.address == c.address {
			own = other
		}
	}
	return cmp.Or(slowest, own)
}

// late reports whether the request on a connection in connLimits.arriving has been arriving for too long.
func (c *Conn) late() bool { return time.Since(c.since) > arrivalTimeout }

// firstOf returns the first connection of a list for which fits returns true, nil if there is none.
func firstOf(conns *list.List, fits func(*Conn) bool) *Conn {
	for e := conns.Front(); e != nil; e = e.Next() {
		if c, _ := e.Value.(*Conn); fits(c) {
			return c
		}
	}
	return nil
}

// remove removes a connection from the lists and counts. l is locked.
func (l *connLimits) remove(c *Conn) {
	if c.gone {
		return
	}
	c.gone = true
	if c.overLimit {
		l.overLimit.Remove(c.listed)
		return
	}
	l.setIdle(c, false)
	l.setArriving(c, false)
	l.open--
	if c.address.IsValid() {
		if l.from[c.address]--; l.from[c.address] == 0 {
			delete(l.from, c.address)
		}
	}
}

// setIdle records whether a connection within the limit is idle. l is locked.
func (l *connLimits) setIdle(c *Conn, waits bool) {
	switch {
	case waits && c.listed == nil:
		c.listed = l.idle.PushBack(c)
	case !waits && c.listed != nil:
		l.idle.Remove(c.listed)
		c.listed = nil
	}
}

// changed is the ConnState callback of the net/http.Server.
func (l *connLimits) changed(conn net.Conn, state http.ConnState) {
	c := problemConnOf(conn)
	if c == nil || state != http.StateActive && state != http.StateIdle {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !c.overLimit && !c.gone {
		l.setIdle(c, state == http.StateIdle)
		l.setArriving(c, state == http.StateActive)
	}
}

// setArriving records whether a request is arriving on a connection within the limit. l is locked.
func (l *connLimits) setArriving(c *Conn, begins bool) {
	switch {
	case begins && c.arriving == nil:
		c.arriving, c.since = l.arriving.PushBack(c), time.Now()
	case !begins && c.arriving != nil:
		l.arriving.Remove(c.arriving)
		c.arriving = nil
	}
}

// Received records that the request on a connection is complete, or that no more of it will be read. For HTTP/2 the first request
// counts as complete from its start. c may be nil.
func (c *Conn) Received() {
	if c == nil {
		return
	}
	c.limits.mu.Lock()
	defer c.limits.mu.Unlock()
	c.limits.setArriving(c, false)
}

// protect protects c, a connection over the limit, from replacement for probeTimeout.
func (l *connLimits) protect(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.probed.IsZero() {
		c.probed = time.Now()
	}
}

// closed removes a closed connection.
func (l *connLimits) closed(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(c)
	l.metrics.connections(l.open + l.overLimit.Len())
}
