package elastic

import (
	"bytes"
	"context"
	"net/url"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"
)

const (
	// maxProbeBytes bounds an answer to a Probe.
	maxProbeBytes = 1 << 20
	// probeFilterPath leaves nothing of what a node says of itself but its version.
	probeFilterPath = "cluster_name,nodes.*.version"
)

// Probe asks one node what it is, and returns its answers as they are, whatever their status. It writes nothing. It is safe for
// concurrent use.
type Probe struct{ client *client }

// Response is what a node said.
type Response struct {
	Status int
	// Product is the header by which an Elasticsearch names itself.
	Product string
	Body    []byte
}

// NewProbe returns a Probe of the node that cfg.URLs names; of a cluster's nodes each needs one of its own. It must be closed. An
// error is core.CodeInvalid.
func NewProbe(cfg Config) (*Probe, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	client, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	client.maxResponseBytes = maxProbeBytes
	return &Probe{client}, nil
}

// Close closes the connections. No call may be in progress.
func (p *Probe) Close() error { return p.client.close() }

func (p *Probe) send(ctx context.Context, r esapi.Request) (Response, error) {
	answer, err := p.client.send(ctx, r, nil)
	if err != nil {
		return Response{}, err
	}
	return Response{answer.status, answer.header.Get("X-Elastic-Product"), answer.body}, nil
}

// Info asks for the name and the version of the product and of the cluster.
func (p *Probe) Info(ctx context.Context) (Response, error) { return p.send(ctx, esapi.InfoRequest{}) }

// Node asks for the same where Info is not there: for the version of the node as one of its cluster's.
func (p *Probe) Node(ctx context.Context) (Response, error) {
	return p.send(ctx, esapi.NodesInfoRequest{NodeID: []string{"_local"}, Metric: []string{"http"}, FilterPath: []string{probeFilterPath}})
}

// Health asks for the state of the cluster.
func (p *Probe) Health(ctx context.Context) (Response, error) {
	return p.send(ctx, esapi.ClusterHealthRequest{Timeout: time.Second})
}

// License asks for the licence of the cluster.
func (p *Probe) License(ctx context.Context) (Response, error) {
	return p.send(ctx, esapi.LicenseGetRequest{})
}

// Alias asks which indices an alias stands for.
func (p *Probe) Alias(ctx context.Context, alias string) (Response, error) {
	return p.send(ctx, esapi.IndicesGetAliasRequest{Name: []string{url.PathEscape(alias)}})
}

// Exists asks whether there is an index or an alias of a name.
func (p *Probe) Exists(ctx context.Context, name string) (Response, error) {
	return p.send(ctx, esapi.IndicesExistsRequest{Index: []string{url.PathEscape(name)}})
}

// Privileges asks which of some privileges the user has.
func (p *Probe) Privileges(ctx context.Context, body []byte) (Response, error) {
	return p.send(ctx, esapi.SecurityHasPrivilegesRequest{Body: bytes.NewReader(body)})
}

// Count asks for the number of documents that match a query.
func (p *Probe) Count(ctx context.Context, alias string, body []byte) (Response, error) {
	return p.send(ctx, esapi.CountRequest{Index: []string{url.PathEscape(alias)}, Body: bytes.NewReader(body)})
}
