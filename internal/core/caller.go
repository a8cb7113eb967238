package core

// Caller identifies the client of a request for limits that callers share.
type Caller struct {
	// ID is Principal.ID, or the address of an anonymous caller.
	ID string
	// Known is true for a Principal. There are few of them, but any number of addresses.
	Known bool
	// Group is the account that anonymous callers share beside known ones; empty if there are no known ones.
	Group string
}

// Account is an account that a Caller's usage counts towards, with its maximum.
type Account struct {
	ID  string
	Max int64
}

// Accounts returns the accounts that a Caller's usage of a limit counts towards, the largest first: a caller may use half of the
// limit; a group may use half, and each caller in it half of that. Each maximum is at least 1.
func (c Caller) Accounts(limit int64) []Account {
	half := max(limit/2, 1)
	if c.Group == "" {
		return []Account{{c.ID, half}}
	}
	return []Account{{c.Group, half}, {c.ID, max(half/2, 1)}}
}
