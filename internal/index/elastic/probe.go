package elastic

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/index"
	"tutti/internal/index/elastic/admin"
	"tutti/internal/index/elastic/transport"
)

// maxProbeBytes limits a response to a Probe.
const maxProbeBytes = 1 << 20

// Probe sends read-only diagnostic requests to one node and returns the responses unchanged, whatever their status. It is safe
// for concurrent use.
type Probe struct{ client *transport.Client }

// Response is a node's response.
type Response = transport.Response

// Identity is what a node reports about itself.
type Identity = transport.Identity

// NewProbe returns a Probe of the node in conn.URLs; each node of a cluster needs its own. It must be closed. An error is
// core.CodeInvalid.
func NewProbe(conn Connection) (*Probe, error) {
	conn.MaxResponseBytes = maxProbeBytes
	client, err := transport.New(conn)
	if err != nil {
		return nil, err
	}
	return &Probe{client}, nil
}

// Close closes the connections, after the calls in progress have ended.
func (p *Probe) Close() error { return p.client.Close() }

func (p *Probe) send(ctx context.Context, r esapi.Request) (Response, error) {
	response, err := p.client.Send(ctx, r, nil)
	if err != nil {
		return Response{}, err
	}
	return *response, nil
}

// Identify requests the product and the version of the node.
func (p *Probe) Identify(ctx context.Context) (Identity, error) {
	return p.client.Identify(ctx, transport.LocalNode)
}

// Defect returns what a node of the cluster is known to do wrong, "" if nothing, also when the nodes do not return their versions.
func (p *Probe) Defect(ctx context.Context) string {
	id, err := p.client.Identify(ctx, transport.AllNodes)
	if err != nil {
		return ""
	}
	return id.Defect
}

// Health requests the state of the cluster.
func (p *Probe) Health(ctx context.Context) (Response, error) {
	return p.send(ctx, esapi.ClusterHealthRequest{Timeout: time.Second})
}

// License requests the cluster's licence.
func (p *Probe) License(ctx context.Context) (Response, error) {
	return p.send(ctx, esapi.LicenseGetRequest{})
}

// Alias requests the indices behind a name with their aliases, and returns those with the alias of that name; taken is index.NameIndex or
// index.NameDataStream if the name is that of one.
func (p *Probe) Alias(ctx context.Context, name string) (response Response, behind []string, taken index.NameKind, err error) {
	response, err = p.send(ctx, transport.AliasRequest(url.PathEscape(name)))
	var answer transport.AliasAnswer
	if err != nil || response.Status != http.StatusOK || response.Decode(&answer) != nil {
		return response, nil, "", err
	}
	behind = answer.Behind(name)
	switch _, same := answer[name]; {
	case same:
		taken = index.NameIndex
	case len(answer) > 0 && len(behind) == 0:
		taken = index.NameDataStream
	}
	return response, behind, taken, nil
}

// Storage requests how the indices of an alias keep their documents; Unsuitable reads the response.
func (p *Probe) Storage(ctx context.Context, alias string) (Response, error) {
	return p.send(ctx, admin.StorageRequest(url.PathEscape(alias)))
}

// Unsuitable returns the index in the response to Probe.Storage whose documents would not be what was written, why, and what to do; "" for none.
func Unsuitable(response []byte) (name, why, hint string) {
	name, why = admin.Unsuitable(response)
	return name, why, admin.HintStorage
}

// Privileges requests which of the privileges in body the user has.
func (p *Probe) Privileges(ctx context.Context, body []byte) (Response, error) {
	return p.send(ctx, esapi.SecurityHasPrivilegesRequest{Body: bytes.NewReader(body)})
}

// Count requests the number of documents that match a query.
func (p *Probe) Count(ctx context.Context, alias string, body []byte) (Response, error) {
	return p.send(ctx, esapi.CountRequest{Index: []string{url.PathEscape(alias)}, Body: bytes.NewReader(body)})
}
