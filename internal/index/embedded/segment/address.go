package segment

import (
	"cmp"
	"net/netip"
	"slices"
)

// AddressOrder is the order of the values of a column of IP addresses, whose ordinals are in the order of their texts.
type AddressOrder struct {
	// Ranks are the positions of the ordinals, Ordinals the ordinals by position.
	Ranks, Ordinals []uint32
}

// Addresses returns the order of the values of a column of IP addresses. It is computed once.
func (c *Column) Addresses() *AddressOrder {
	c.lazyAddresses.once.Do(func() {
		addresses, texts := make([]netip.Addr, c.Size()), c.Texts()
		o := &c.lazyAddresses.order
		o.Ranks, o.Ordinals = make([]uint32, c.Size()), make([]uint32, c.Size())
		for i := range addresses {
			addresses[i], o.Ordinals[i] = parseAddress(string(texts.At(uint32(i)))), uint32(i)
		}
		slices.SortFunc(o.Ordinals, func(a, b uint32) int {
			return cmp.Or(addresses[a].Compare(addresses[b]), cmp.Compare(a, b))
		})
		for rank, ordinal := range o.Ordinals {
			o.Ranks[ordinal] = uint32(rank)
		}
	})
	return &c.lazyAddresses.order
}

// parseAddress returns an address as 16 bytes, so that IPv4 addresses are among the IPv6 ones that they are mapped to.
func parseAddress(text string) netip.Addr {
	address, _ := netip.ParseAddr(text) // a column has only valid ones
	return netip.AddrFrom16(address.As16())
}

// CompareAddresses compares the texts of two IP addresses by their bits.
func CompareAddresses(a, b []byte) int {
	return parseAddress(string(a)).Compare(parseAddress(string(b)))
}
