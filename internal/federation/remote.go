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
	// headers are the names of those that are handed on.
	headers []string
	// configErr says why it is never asked: its configuration is no good. Nil when it is.
	configErr error
	// inFlight has an element for each call in progress.
	inFlight chan struct{}

	mu sync.Mutex
	// fields are what it can aggregate, with the names of their types; nil until it has said so, and then why says why not.
	fields map[string]string
	err    error
	// reported is what was said last of what is wrong with it, "" for nothing.
	reported string
}

// newRemote makes a remote of what is configured.
func newRemote(catalogue string, raw rawRemote, headers []string, cfg Config) *remote {
	r := &remote{
		catalogue: catalogue, url: raw.GraphQLURL, documentType: raw.DocumentType, headers: headers,
		inFlight: make(chan struct{}, cfg.MaxInFlight), configErr: raw.validate(),
	}
	if r.err = r.configErr; r.err == nil {
		r.err = core.NewError(core.CodeUnavailable, "has not said yet which fields it has")
	}
	return r
}

// availableFields returns what the remote can aggregate, or why that is not known.
func (r *remote) availableFields() (fields map[string]string, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fields != nil {
		return r.fields, nil
	}
	return nil, r.err
}

// update takes what the remote said of its fields, or why it said nothing, and reports whether fields are others than before.
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

// shouldReport reports whether what is wrong with the remote, nil for nothing, is not what was told last.
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

// secrets returns what no message of the remote may have in it when it is shown: where it is, and the headers that it was sent.
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
