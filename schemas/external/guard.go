package external

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
	"tutti/schemas/violation"
)

// errForbiddenAddress is the error of a connection to an address that is neither public nor allowed.
var errForbiddenAddress = tlsconfig.NewError("the address of a service is not among the hosts that are allowed",
	"add its host to schemas.externalValidations.allowedHosts")

// guard decides which hosts and addresses external validations may call. Otherwise the author of an analysis type could read what
// only this machine can reach.
type guard struct {
	// allowed holds hosts in lower case, with or without a port; none allows every public address.
	allowed map[string]struct{}
	dialer  net.Dialer
}

func newGuard(hosts []string) (*guard, error) {
	g := &guard{allowed: map[string]struct{}{}, dialer: net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}}
	for _, h := range hosts {
		key, ok := hostKey(h)
		if !ok {
			return nil, core.NewError(core.CodeInvalid, "schemas.externalValidations.allowedHosts: "+violation.Quoted(h)+
				" is neither a host nor an address, with or without a port")
		}
		g.allowed[key] = struct{}{}
	}
	return g, nil
}

// hostKey returns the normalized form of a host in guard.allowed: "host", "host:port" or "[v6]:port".
func hostKey(text string) (string, bool) {
	if a, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return a.Unmap().String(), a.Zone() == ""
	}
	u, err := url.Parse("http://" + text)
	if err != nil || u.Hostname() == "" || u.Host != text || strings.ContainsAny(text, "*/ ") {
		return "", false
	}
	return joinedHost(u.Hostname(), u.Port()), true
}

func joinedHost(host, port string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if a, err := netip.ParseAddr(host); err == nil {
		host = a.Unmap().String()
	}
	if port == "" {
		return host
	}
	return net.JoinHostPort(host, port)
}

// listed reports whether a host is allowed by name.
func (g *guard) listed(host, port string) bool {
	_, bare := g.allowed[joinedHost(host, "")]
	_, whole := g.allowed[joinedHost(host, port)]
	return bare || whole
}

// dial connects to "host:port". If hosts are listed, others are forbidden. Otherwise every public address is allowed.
func (g *guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	dialer := g.dialer
	if !g.listed(host, port) {
		if len(g.allowed) > 0 {
			return nil, errForbiddenAddress
		}
		dialer.ControlContext = onlyPublic
	}
	return dialer.DialContext(ctx, network, address)
}

// onlyPublic rejects addresses that are not public. It checks the address after the name was resolved.
func onlyPublic(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !isPublic(at.Addr()) {
		return errForbiddenAddress
	}
	return nil
}

// isPublic reports whether an address is a host of the public internet.
func isPublic(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsValid() || !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return false
	}
	for _, p := range reserved() {
		if p.Contains(a) {
			return false
		}
	}
	if v4, ok := embedded(a); ok {
		return isPublic(v4)
	}
	return true
}

// reserved are the prefixes of RFC 6890 that the standard library counts as global, and the metadata address of a large
// cloud.
func reserved() []netip.Prefix {
	var all []netip.Prefix
	for _, p := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "240.0.0.0/4", "168.63.129.16/32",
		"::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "fec0::/10",
	} {
		all = append(all, netip.MustParsePrefix(p))
	}
	return all
}

// embedded returns the IPv4 address in an address of NAT64 or 6to4.
func embedded(a netip.Addr) (netip.Addr, bool) {
	b := a.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(a):
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case netip.MustParsePrefix("2002::/16").Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	default:
		return netip.Addr{}, false
	}
}
