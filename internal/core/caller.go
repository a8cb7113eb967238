package core

// Caller is what a request counts as where a limit is shared among callers.
type Caller struct {
	// ID is that of a Principal, or says where an anonymous caller is.
	ID string
	// Known is true for a Principal. There are few of them, while there may be any number of addresses.
	Known bool
	// Group is what anonymous callers share beside known ones; empty where there are no known ones.
	Group string
}

// Account is what a Caller counts on, with the most that may be held of it.
type Account struct {
	ID  string
	Max int64
}

// Accounts returns the accounts that all a Caller holds of a limit counts on, the largest first: a caller has half of the limit, a
// group half, of which each caller in it has half. Each is at least 1.
func (c Caller) Accounts(limit int64) []Account {
	half := max(limit/2, 1)
	if c.Group == "" {
		return []Account{{c.ID, half}}
	}
	return []Account{{c.Group, half}, {c.ID, max(half/2, 1)}}
}
