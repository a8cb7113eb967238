package segment

import (
	"cmp"
	"net/netip"
	"slices"

	"tutti/internal/index/embedded/segment/fieldvalue"
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
			addresses[i], o.Ordinals[i] = fieldvalue.ParseAddress(string(texts.At(uint32(i)))), uint32(i)
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
