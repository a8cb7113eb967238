package http

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"tutti/internal/core"
)

const (
	headerForwardedFor = "X-Forwarded-For"
	// anonymousGroup is what all callers without a token share where tokens are asked for.
	anonymousGroup = "anonymous"
)

// limitCaller returns what a request counts as where a limit is shared: the principal of its token, else the network address of
// its client.
func (h *Handler) limitCaller(r *http.Request) core.Caller {
	if p, _ := callerOf(r.Context()); p.ID != "" {
		return core.Caller{ID: p.ID, Known: true}
	}
	c := core.Caller{ID: "address:" + clientNetwork(h.clientAddress(r)).String()}
	if h.ports.Authenticator != nil {
		c.Group = anonymousGroup
	}
	return c
}

// clientAddress returns the address that a request comes from: that of the connection, or, where a trusted proxy has it, the last
// one in X-Forwarded-For that is not one. What is left of that one is the client's own claim.
func (h *Handler) clientAddress(r *http.Request) netip.Addr {
	address, _ := parseAddress(r.RemoteAddr)
	forwarded := strings.Split(strings.Join(r.Header.Values(headerForwardedFor), ","), ",")
	for _, text := range slices.Backward(forwarded) {
		if !isAmong(h.cfg.TrustedProxies, address) {
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
