package federation

import (
	"maps"
	"sync"

	"tutti/internal/core"
)

// remote is another server of a federation.
type remote struct {
	catalogue, label  string
	url, documentType string
	// headers are the names of those that are handed on.
	headers []string
	// slots has an element for each call in progress.
	slots chan struct{}

	mu sync.Mutex
	// fields are what it can aggregate, with the names of their types; nil until it has said so, and then why says why not.
	fields map[string]string
	why    error
}

// newRemote makes a remote of what is configured.
func newRemote(catalogue string, raw rawRemote, headers []string, cfg Config) *remote {
	r := &remote{
		catalogue: catalogue, url: raw.GraphQLURL, documentType: raw.DocumentType, headers: headers,
		slots: make(chan struct{}, cfg.MaxInFlight), why: raw.configured(),
	}
	if r.why == nil {
		r.why = core.NewError(core.CodeUnavailable, "has not been reached yet")
	}
	return r
}

// usable tells whether the configuration of the remote lets it be asked.
func (r *remote) usable() bool {
	_, why := r.known()
	return core.CodeOf(why) != core.CodeInvalid
}

// known gives what the remote can aggregate, or why that is not known.
func (r *remote) known() (fields map[string]string, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fields != nil {
		return r.fields, nil
	}
	return nil, r.why
}

// learn takes what the remote said of its fields, or why it said nothing, and tells whether fields are others than before.
func (r *remote) learn(fields map[string]string, why error) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if why != nil {
		r.why = why
		return false
	}
	changed = r.fields == nil || !maps.Equal(r.fields, fields)
	r.fields, r.why = fields, nil
	return changed
}
