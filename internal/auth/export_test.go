package auth

import "net/http"

// RejectDowngrade exports rejectDowngrade.
var RejectDowngrade = rejectDowngrade

// Bounds of the checks in flight.
const (
	MaxCallers     = maxCallers
	MaxConnections = maxConnections
)

// SetTransport sets how i sends requests.
func (i *Introspection) SetTransport(t http.RoundTripper) { i.checks.client.Transport = t }
