package model

import (
	"net/netip"
	"strings"
	"time"

	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
)

// Range is a value of a range type: the members gt, gte, lt and lte of its object, or a network of addresses.
type Range struct {
	class   Class
	field   query.Field
	members map[string]string
	network netip.Prefix
}

// EndOf returns the field of the ends of a range type, false for another type.
func EndOf(f query.Field) (query.Field, bool) {
	end, ranged := strings.CutSuffix(f.Type, "_range")
	f.Type = end
	return f, ranged
}

// newRange returns the value of an object, or of the text of a network.
func newRange(end query.Field, object map[string]any, network string) Value {
	r := &Range{class: ClassOf(end.Type), field: end, members: map[string]string{}}
	for name, member := range object {
		switch member := member.(type) {
		case nil:
		case string:
			r.members[name] = member
		case interface{ String() string }: // a number
			r.members[name] = member.String()
		}
	}
	r.network, _ = netip.ParsePrefix(network) // the zero value contains no address
	return Value{Range: r}
}

// Meets reports whether the range contains some value from from to before to, for dates, or from from to to.
func (r *Range) Meets(from, to Value) bool {
	if r.class == AddressClass && r.network.IsValid() {
		return r.network.Contains(netip.MustParseAddr(from.Text))
	}
	for name, text := range r.members {
		if r.class == DateClass {
			first, next, err := sqon.ParseDate(text)
			if day := first.Add(24 * time.Hour); next.After(day) { // engines complete a year by its first day
				next = day
			}
			outside := map[string]bool{
				"gte": !to.At.After(first), "gt": !to.At.After(next), "lte": !from.At.Before(next), "lt": !from.At.Before(first),
			}
			if err != nil || outside[name] {
				return false
			}
			continue
		}
		bound, ok := StoredValue(r.field, text)
		outside := map[string]bool{
			"gte": ok && Compare(r.class, to, bound) < 0, "gt": ok && Compare(r.class, to, bound) <= 0,
			"lte": ok && Compare(r.class, from, bound) > 0, "lt": ok && Compare(r.class, from, bound) >= 0,
		}
		if !ok || outside[name] {
			return false
		}
	}
	return true
}

// MeetsPeriod is Meets for dates.
func (r *Range) MeetsPeriod(from, to time.Time) bool { return r.Meets(Value{At: from}, Value{At: to}) }
