package federation

import (
	"net/http"
	"slices"
	"strings"
)

// isHopHeader reports whether a header must never be forwarded: headers of one connection (RFC 9110, section 7.6.1), and those
// that this process sets itself.
func isHopHeader(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"Host", "Content-Length", "Content-Type", "Content-Encoding", "Accept-Encoding", "Accept", "Expect":
		return true
	default:
		return false
	}
}

// forwardedHeaders returns the headers of a client's request with the given names. Headers that the client lists in Connection
// are not forwarded.
func forwardedHeaders(names []string, from http.Header) http.Header {
	h := http.Header{}
	if len(names) == 0 || len(from) == 0 {
		return h
	}
	hop := strings.Split(strings.Join(from.Values("Connection"), ","), ",")
	for _, name := range names {
		name = http.CanonicalHeaderKey(strings.TrimSpace(name))
		ofHop := slices.ContainsFunc(hop, func(h string) bool { return strings.EqualFold(strings.TrimSpace(h), name) })
		if values := from.Values(name); len(values) > 0 && !isHopHeader(name) && !ofHop {
			h[name] = slices.Clone(values)
		}
	}
	return h
}
