// Package sets keeps saved sets (CONTRACT sections 5 and 6): lists of values that filters name by set_id:<id>. A set belongs to
// who saved it, is never changed, and ends when nobody has used it for long. It knows nothing of searching: its caller finds
// the members.
//
// It may import internal/core and internal/store.
package sets
