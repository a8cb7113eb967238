package api

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"tutti/http/server"
	"tutti/internal/core"
)

const (
	headerForwardedFor = "X-Forwarded-For"
	// anonymousGroup is the group of all callers without a token when authentication is on.
	anonymousGroup = "anonymous"
)

// LimitCaller returns the caller that shared limits count a request for: the principal of its token, else the client's network
// address.
func LimitCaller(r *http.Request) core.Caller {
	if p, _ := CallerOf(r.Context()); p.ID != "" {
		return core.Caller{ID: p.ID, Known: true}
	}
	c := core.Caller{ID: "address:" + server.ClientNetwork(clientAddress(r)).String()}
	if authenticatorOf(r) != nil {
		c.Group = anonymousGroup
	}
	return c
}

// clientAddress returns the address of the connection or, behind a trusted proxy, the last address in X-Forwarded-For that is not
// a trusted proxy. Earlier entries are set by the client and ignored.
func clientAddress(r *http.Request) netip.Addr {
	address, _ := parseAddress(r.RemoteAddr)
	forwarded := strings.Split(strings.Join(r.Header.Values(headerForwardedFor), ","), ",")
	for _, text := range slices.Backward(forwarded) {
		if !server.IsAmong(configOf(r).TrustedProxies, address) {
			break
		}
		before, err := parseAddress(strings.TrimSpace(text))
		if err != nil {
			break
		}
		address = before
	}
	return address
}

// parseAddress reads an address with or without a port.
func parseAddress(text string) (netip.Addr, error) {
	address, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		var withPort netip.AddrPort
		withPort, err = netip.ParseAddrPort(text)
		address = withPort.Addr()
	}
	return address.Unmap().WithZone(""), err
}
