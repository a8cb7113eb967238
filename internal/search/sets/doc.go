// Package sets stores saved sets (CONTRACT sections 5 and 6): lists of values that filters reference by set_id:<id>. A set
// belongs to the user who saved it, is immutable, and expires when it has not been used for a while. The package does not search:
// its caller finds the members.
//
// It may import internal/core and internal/store.
package sets
