// Package hostname says what a host is, from its name or address alone.
package hostname

import (
	"net/netip"
	"strings"
)

// Loopback reports whether a host is this machine. Names other than localhost are not, whatever they resolve to.
func Loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
