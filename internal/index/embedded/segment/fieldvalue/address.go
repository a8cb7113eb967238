package fieldvalue

import "net/netip"

// ParseAddress returns the stored text of an IP address as 16 bytes, so that IPv4 addresses are among the IPv6 ones that they are mapped to.
func ParseAddress(text string) netip.Addr {
	address, _ := netip.ParseAddr(text) // a column has only valid ones
	return netip.AddrFrom16(address.As16())
}

// CompareAddresses compares the texts of two IP addresses by their bits.
func CompareAddresses(a, b []byte) int {
	return ParseAddress(string(a)).Compare(ParseAddress(string(b)))
}
