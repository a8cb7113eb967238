package federation

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"tutti/internal/core"
)

// remote is another server of a federation.
type remote struct {
	catalogue, label  string
	url, documentType string
	// headers are the names of the forwarded headers.
	headers []string
	// configErr is why it is never queried: its configuration is invalid. Nil if it is valid.
	configErr error
	// inFlight has one element for each call in flight.
	inFlight chan struct{}

	mu sync.Mutex
	// fields are the fields that it can aggregate, with their type names; nil before the first discovery succeeds, and then err
	// is the reason.
	fields map[string]string
	err    error
	// reported is the last logged error, "" for none.
	reported string
}

// newRemote returns the remote of a configuration.
func newRemote(catalogue string, raw rawRemote, headers []string, cfg Config) *remote {
	r := &remote{
		catalogue: catalogue, url: raw.GraphQLURL, documentType: raw.DocumentType, headers: headers,
		inFlight: make(chan struct{}, cfg.MaxInFlight), configErr: raw.validate(),
	}
	if r.err = r.configErr; r.err == nil {
		r.err = core.NewError(core.CodeUnavailable, "its fields have not been discovered yet")
	}
	return r
}

// availableFields returns the fields that the remote can aggregate, or why they are unknown.
func (r *remote) availableFields() (fields map[string]string, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fields != nil {
		return r.fields, nil
	}
	return nil, r.err
}

// update stores the result of a discovery, and reports whether the fields have changed.
func (r *remote) update(fields map[string]string, why error) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if why != nil {
		r.err = why
		return false
	}
	changed = r.fields == nil || !maps.Equal(r.fields, fields)
	r.fields, r.err = fields, nil
	return changed
}

// shouldReport reports whether an error, nil for none, differs from the last reported one.
func (r *remote) shouldReport(err error) bool {
	now := ""
	if err != nil {
		now = core.MessageOf(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.reported
	r.reported = now
	return now != last
}

// secrets returns the strings that must not appear in displayed messages of the remote: its address, and the headers sent to it.
func (r *remote) secrets(sent http.Header) []string {
	secrets := []string{r.url}
	if u, err := url.Parse(r.url); err == nil {
		password, _ := u.User.Password()
		secrets = append(secrets, u.Host, u.Hostname(), password)
	}
	for _, values := range sent {
		for _, value := range values {
			secrets = append(secrets, value)
			if _, token, found := strings.Cut(value, " "); found { // as in Bearer abc
				secrets = append(secrets, token)
			}
		}
	}
	return secrets
}
