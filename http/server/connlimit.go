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
	// mostConnections is the default limit where the process may have more files open than that needs.
	mostConnections = 8192
	// minReserve and maxReserve bound the connections for monitoring beyond the limit, one for each reserveShare of it.
	minReserve, maxReserve, reserveShare = 2, 64, 16
	// probeTimeout is how long a connection beyond the limit has for a request of monitoring before another may replace it.
	probeTimeout = 5 * time.Second
	// arrivalTimeout is how long a request may take to arrive before its connection may be replaced at a limit.
	arrivalTimeout = time.Second
	// maxStreams bounds the requests in flight of a connection of HTTP/2.
	maxStreams = 32
	// maxReceived bounds the bytes of a connection of HTTP/2 that have arrived and that no handler has read.
	maxReceived = 256 << 10
	// networkBits is the length of the prefix that one client has of IPv6.
	networkBits = 64
	// limitTotal and limitAddress are the values of the label limit.
	limitTotal, limitAddress = "total", "address"
)

// connLimits bounds the connections of a Server. At a limit a new connection replaces the one that has waited longest for a
// request, or else one whose request has been arriving for too long, of the address that has the most connections. While requests
// are served on all of them it is one of a few beyond the limit, on which only monitoring is answered; the newest replaces the
// oldest, so that half-sent requests cannot keep a probe waiting.
type connLimits struct {
	total, perAddress, reserve int
	proxies                    []netip.Prefix
	metrics                    *Metrics

	mu sync.Mutex
	// open counts the connections within the limit, from those of each address but of proxies.
	open int
	from map[netip.Addr]int
	// waiting are the connections within the limit on which no request is in flight, the one that waits longest first.
	waiting list.List
	// arriving are those within the limit whose request has begun and not been received, the one that began first at the front.
	arriving list.List
	// over are those beyond the limit, the oldest first.
	over list.List
}

// newConnLimits returns the limits of a Server of a process that may have so many files open.
func newConnLimits(cfg Config, files int) *connLimits {
	l := &connLimits{
		total: cfg.MaxConnections, perAddress: cfg.MaxConnectionsPerAddress,
		proxies: cfg.TrustedProxies, metrics: cfg.Metrics, from: map[netip.Addr]int{},
	}
	if l.total == 0 {
		l.total = min(mostConnections, files/2)
	}
	l.reserve = min(max(l.total/reserveShare, minReserve), maxReserve)
	l.total = max(min(l.total, files/4*3-l.reserve), 1) // the rest is for everything else that has a descriptor
	if l.perAddress == 0 {
		l.perAddress = max(l.total/2, 1)
	}
	return l
}

// admit counts a new connection, and reports whether it may be used.
func (l *connLimits) admit(c *Conn) bool {
	c.limits, c.address = l, l.addressOf(c.RemoteAddr())
	l.mu.Lock()
	replaced := l.place(c)
	l.metrics.connections(l.open + l.over.Len())
	l.mu.Unlock()
	if replaced != nil {
		_ = replaced.Conn.Close()
	}
	return replaced != c
}

// addressOf returns what connections are counted by, the zero Addr where they are not.
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

// IsAmong reports whether an address is in one of some networks.
func IsAmong(networks []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(address) })
}

// ClientNetwork returns what is taken for one client: an address of IPv4, a network of IPv6.
func ClientNetwork(address netip.Addr) netip.Addr {
	if network, err := address.Prefix(networkBits); err == nil && address.Is6() {
		return network.Addr()
	}
	return address
}

// place puts a new connection into the lists, and returns the one to close for it, which may be c itself. l is locked.
func (l *connLimits) place(c *Conn) (replaced *Conn) {
	limit := ""
	switch {
	case c.address.IsValid() && l.from[c.address] >= l.perAddress:
		limit = limitAddress
		replaced = firstOf(&l.waiting, func(other *Conn) bool { return other.address == c.address })
		if replaced == nil {
			replaced = firstOf(&l.arriving, func(other *Conn) bool { return other.address == c.address && other.late() })
		}
	case l.open >= l.total:
		limit = limitTotal
		replaced = firstOf(&l.waiting, func(*Conn) bool { return true })
		if replaced == nil {
			replaced = l.slowest(c)
		}
	}
	if limit != "" && replaced == nil {
		l.metrics.limited(limit)
		c.over = true
		if l.over.Len() >= l.reserve {
			if replaced = firstOf(&l.over, func(other *Conn) bool { return time.Since(other.probed) > probeTimeout }); replaced == nil {
				return c
			}
			l.remove(replaced)
		}
		c.listed = l.over.PushBack(c)
		return replaced
	}
	if replaced != nil {
		l.remove(replaced)
	}
	l.open++
	if c.address.IsValid() {
		l.from[c.address]++
	}
	c.listed = l.waiting.PushBack(c)
	return replaced
}

// slowest returns the connection whose late request began first, of the address that has the most connections, if it has more than
// that of c, else of c's own address; nil where there is none. l is locked.
func (l *connLimits) slowest(c *Conn) *Conn {
	var slowest, own *Conn
	most := l.from[c.address]
	for e := l.arriving.Front(); e != nil; e = e.Next() {
		other, _ := e.Value.(*Conn)
		if !other.late() {
			break // as are all behind it
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

// late reports whether the request on a connection in connLimits.arriving takes too long to arrive.
func (c *Conn) late() bool { return time.Since(c.since) > arrivalTimeout }

// firstOf returns the first connection of a list that fits, nil where none does.
func firstOf(conns *list.List, fits func(*Conn) bool) *Conn {
	for e := conns.Front(); e != nil; e = e.Next() {
		if c, _ := e.Value.(*Conn); fits(c) {
			return c
		}
	}
	return nil
}

// remove ends the counting of a connection. l is locked.
func (l *connLimits) remove(c *Conn) {
	if c.gone {
		return
	}
	c.gone = true
	if c.over {
		l.over.Remove(c.listed)
		return
	}
	l.rest(c, false)
	l.arrive(c, false)
	l.open--
	if c.address.IsValid() {
		if l.from[c.address]--; l.from[c.address] == 0 {
			delete(l.from, c.address)
		}
	}
}

// rest notes whether a connection within the limit waits for a request. l is locked.
func (l *connLimits) rest(c *Conn, waits bool) {
	switch {
	case waits && c.listed == nil:
		c.listed = l.waiting.PushBack(c)
	case !waits && c.listed != nil:
		l.waiting.Remove(c.listed)
		c.listed = nil
	}
}

// changed is a net/http.Server's ConnState.
func (l *connLimits) changed(conn net.Conn, state http.ConnState) {
	c := problemConnOf(conn)
	if c == nil || state != http.StateActive && state != http.StateIdle {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !c.over && !c.gone {
		l.rest(c, state == http.StateIdle)
		l.arrive(c, state == http.StateActive)
	}
}

// arrive notes whether a request is arriving on a connection within the limit. l is locked.
func (l *connLimits) arrive(c *Conn, begins bool) {
	switch {
	case begins && c.arriving == nil:
		c.arriving, c.since = l.arriving.PushBack(c), time.Now()
	case !begins && c.arriving != nil:
		l.arriving.Remove(c.arriving)
		c.arriving = nil
	}
}

// Received notes that the request on a connection was received, or that no more of it is read. A connection of HTTP/2 counts as
// received from its first request on. c may be nil.
func (c *Conn) Received() {
	if c == nil {
		return
	}
	c.limits.mu.Lock()
	defer c.limits.mu.Unlock()
	c.limits.arrive(c, false)
}

// keep makes no other connection replace c, which is beyond the limit, for probeTimeout.
func (l *connLimits) keep(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.probed.IsZero() {
		c.probed = time.Now()
	}
}

// closed ends the counting of a connection.
func (l *connLimits) closed(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(c)
	l.metrics.connections(l.open + l.over.Len())
}
