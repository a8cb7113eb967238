package federation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
	"tutti/internal/search/catalogue/definition"
	"tutti/internal/search/graphql/schema"
)

// network is the federation of one catalogue.
type network struct {
	catalogue string
	// raw is the configuration.
	raw   json.RawMessage
	nodes []*node
	// remotes are the remotes of the nodes that have one, in the order of the configuration.
	remotes []*remote
	// end stops the background discovery; nil before it has started.
	end func()
}

// node is a node of a federation: this catalogue itself if remote is nil.
type node struct {
	id, name string
	remote   *remote
}

// selected reports whether a node is in nodesFilter; an empty filter selects all. A node without an ID is selected by name.
func (n *node) selected(filter []string) bool {
	return len(filter) == 0 || slices.Contains(filter, cmp.Or(n.id, n.name))
}

// optional is a value that may be absent. Definitions accept an empty string as an absent object.
type optional[T any] struct {
	set   bool
	value T
}

// UnmarshalJSON reads a value that is present.
func (a *optional[T]) UnmarshalJSON(raw []byte) error {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' && raw[0] != '[' {
		return nil
	}
	a.set = true
	return json.Unmarshal(raw, &a.value)
}

// Configuration of a federation (CONTRACT section 5).
type (
	rawNode struct {
		DisplayName string `json:"displayName"`
		NodeID      string `json:"nodeId"`
	}
	rawRequests struct {
		Headers optional[[]string] `json:"headers"`
	}
	rawRemote struct {
		rawNode

		DocumentType   string                `json:"documentType"`
		GraphQLURL     string                `json:"graphqlUrl"`
		Requests       optional[rawRequests] `json:"requests"`
		CAFile         string                `json:"caFile"`
		ClientCertFile string                `json:"clientCertFile"`
		ClientKeyFile  string                `json:"clientKeyFile"`
		ServerName     string                `json:"serverName"`
	}
	rawNetwork struct {
		LocalNode      optional[rawNode]     `json:"localNode"`
		RemoteNodes    []optional[rawRemote] `json:"remoteNodes"`
		RemoteRequests optional[rawRequests] `json:"remoteRequests"`
	}
)

// networkOf returns the federation of a catalogue, nil if it has no remote nodes.
func networkOf(d definition.Definition, cfg Config) *network {
	var raw optional[rawNetwork]
	if len(d.Network) == 0 || json.Unmarshal(d.Network, &raw) != nil || len(raw.value.RemoteNodes) == 0 {
		return nil
	}
	n := &network{catalogue: d.ID, raw: d.Network}
	if local := raw.value.LocalNode; local.set {
		n.nodes = append(n.nodes, &node{id: local.value.NodeID, name: cmp.Or(local.value.DisplayName, local.value.NodeID, d.ID)})
	}
	taken := map[string]bool{}
	for i, one := range raw.value.RemoteNodes {
		headers := one.value.Requests.value.Headers
		if !headers.set {
			headers = raw.value.RemoteRequests.value.Headers
		}
		r := newRemote(d.ID, fmt.Sprintf("network.remoteNodes[%d]", i), one.value, headers.value, cfg)
		name := cmp.Or(one.value.DisplayName, one.value.NodeID, fmt.Sprint("remote node ", i+1))
		r.label = labelOf(cmp.Or(one.value.NodeID, name), taken)
		n.remotes = append(n.remotes, r)
		n.nodes = append(n.nodes, &node{id: one.value.NodeID, name: name, remote: r})
	}
	slices.SortStableFunc(n.nodes, func(a, b *node) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.id, b.id)) })
	return n
}

// closeConnections closes the idle connections of the remotes.
func (n *network) closeConnections() {
	for _, r := range n.remotes {
		r.http.CloseIdleConnections()
	}
}

// labelOf returns a unique name of a node for metrics and logs.
func labelOf(wish string, taken map[string]bool) string {
	wish = strings.ToValidUTF8(wish, "_")
	label := wish
	for i := 2; taken[label]; i++ {
		label = fmt.Sprint(wish, " ", i)
	}
	taken[label] = true
	return label
}

// validate returns why the configuration of a remote node is invalid, nil if it is valid.
func (raw rawRemote) validate() error {
	var lacking []string
	for _, one := range []struct{ name, value string }{
		{"displayName", raw.DisplayName}, {"documentType", raw.DocumentType}, {"graphqlUrl", raw.GraphQLURL},
	} {
		if one.value == "" {
			lacking = append(lacking, one.name)
		}
	}
	if len(lacking) > 0 {
		return &core.Error{
			Code: core.CodeInvalid, Message: "the configuration of this node lacks " + strings.Join(lacking, ", "),
			Hint: "set it in network.remoteNodes of the catalogue",
		}
	}
	if !schema.IsName(raw.DocumentType) {
		return &core.Error{
			Code: core.CodeInvalid, Message: "the documentType configured for this node is not a GraphQL name",
			Hint: "set it to the name of the root field in the node's GraphQL schema",
		}
	}
	u, err := url.Parse(raw.GraphQLURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return &core.Error{
			Code: core.CodeInvalid, Message: "the graphqlUrl configured for this node is not the URL of an HTTP server",
			Hint: "set graphqlUrl to an address that begins with http:// or https:// and a host",
		}
	}
	return nil
}

// remote is another server of a federation.
type remote struct {
	catalogue, label  string
	url, documentType string
	// files are those of its TLS connections, which http makes.
	files tlsconfig.Files
	http  *http.Client
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

// newRemote returns the remote of a configuration, whose key is named by errors of TLS.
func newRemote(catalogue, key string, raw rawRemote, headers []string, cfg Config) *remote {
	r := &remote{
		catalogue: catalogue, url: raw.GraphQLURL, documentType: raw.DocumentType, headers: headers,
		inFlight: make(chan struct{}, cfg.MaxInFlight), configErr: raw.validate(),
	}
	r.files = tlsconfig.Files{
		Subject: "catalogue " + catalogue, Failures: cfg.Failures, Key: key, CAFile: raw.CAFile, ClientCertFile: raw.ClientCertFile, ClientKeyFile: raw.ClientKeyFile, ServerName: raw.ServerName,
	}
	r.http = newHTTPClient(r.files, cfg)
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
		now = core.DisplayOf(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.reported
	r.reported = now
	return now != last
}

// secrets returns the strings that must not appear in displayed messages of the remote: its address and the values of its parameters, and the headers sent to it.
func (r *remote) secrets(sent http.Header) []string {
	secrets := []string{r.url}
	if u, err := url.Parse(r.url); err == nil {
		password, _ := u.User.Password()
		secrets = append(secrets, u.Host, u.Hostname(), u.User.Username(), password, u.RawQuery)
		for _, values := range u.Query() {
			secrets = append(secrets, values...)
		}
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
