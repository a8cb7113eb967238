package transport

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/core"
	"tutti/internal/index/elastic/flavour"
)

const (
	// productHeader is in each response of an Elasticsearch since 7.14.
	productHeader = "X-Elastic-Product"
	// elasticTagline is in the information of every Elasticsearch.
	elasticTagline = "You Know, for Search"
	// forbiddenReason is in the response of an OpenSearch that does not let a user read its information.
	forbiddenReason = "no permissions for ["
	// versionsFilterPath keeps only the versions of the nodes' information.
	versionsFilterPath = "cluster_name,nodes.*.version"
)

// Nodes that Identify asks.
const (
	AllNodes  = "_all"
	LocalNode = "_local"
)

// Identity is what nodes report about themselves.
type Identity struct {
	ClusterName string
	// Product is "" when it is unknown.
	Product flavour.Product
	// Version is the lowest of the nodes, zero when it is unknown.
	Version flavour.Version
	// Defect is what one of the nodes is known to do wrong, "" if nothing.
	Defect string
	// Response is the one that Product and Version are from.
	Response Response
}

// Found returns what was found, for messages.
func (id *Identity) Found() string {
	switch {
	case id.Product != "" && id.Version != flavour.Version{}:
		return string(id.Product) + " " + id.Version.String()
	case id.Product != "":
		return string(id.Product)
	}
	kind, _, err := mime.ParseMediaType(id.Response.Header.Get("Content-Type"))
	if err != nil {
		kind = "no content type"
	}
	return fmt.Sprintf("an unknown service, which returned status %d and %s", id.Response.Status, kind)
}

// Identify requests the identity of AllNodes or the LocalNode. A response that identifies nothing is no error.
func (c *Client) Identify(ctx context.Context, nodes string) (Identity, error) {
	root, err := c.Send(ctx, esapi.InfoRequest{}, nil)
	if err != nil {
		return Identity{}, err
	}
	id := Identity{Response: *root}
	var info struct {
		ClusterName string `json:"cluster_name"`
		Tagline     string `json:"tagline"`
		Version     struct {
			Number       string `json:"number"`
			Distribution string `json:"distribution"`
		} `json:"version"`
	}
	_ = json.Unmarshal(root.Body, &info) // GET / is a module that a node may lack
	id.ClusterName = info.ClusterName
	id.Version, _ = flavour.ParseVersion(info.Version.Number)
	switch {
	case strings.EqualFold(info.Version.Distribution, string(flavour.OpenSearch)),
		root.Status == http.StatusForbidden && bytes.Contains(root.Body, []byte(forbiddenReason)):
		id.Product = flavour.OpenSearch
	case info.Version.Distribution != "":
		id.Product = flavour.Product(info.Version.Distribution)
		return id, nil
	case root.Header.Get(productHeader) == string(flavour.Elasticsearch), info.Tagline == elasticTagline:
		id.Product = flavour.Elasticsearch
	default:
		return id, nil
	}
	id.Defect = flavour.Defect(id.Product, id.Version)
	return id, c.readVersions(ctx, nodes, &id)
}

// readVersions sets the lowest version of nodes, if they return it.
func (c *Client) readVersions(ctx context.Context, nodes string, id *Identity) error {
	request := esapi.NodesInfoRequest{NodeID: []string{nodes}, Metric: []string{"http"}, FilterPath: []string{versionsFilterPath}}
	reply, err := c.Send(ctx, request, nil)
	if err != nil {
		return err
	}
	if id.Version == (flavour.Version{}) && reply.Status != http.StatusNotFound {
		id.Response = *reply
	}
	var answer struct {
		ClusterName string `json:"cluster_name"`
		Nodes       map[string]struct {
			Version string `json:"version"`
		} `json:"nodes"`
	}
	if reply.Status != http.StatusOK || json.Unmarshal(reply.Body, &answer) != nil {
		return nil
	}
	id.ClusterName = cmp.Or(answer.ClusterName, id.ClusterName)
	var versions []flavour.Version
	for _, node := range answer.Nodes {
		if version, ok := flavour.ParseVersion(node.Version); ok {
			versions = append(versions, version)
		}
	}
	if len(versions) > 0 {
		id.Version, id.Defect = slices.MinFunc(versions, flavour.Version.Compare), flavour.Defect(id.Product, versions...)
	}
	return nil
}

// identified is an engine, what one of its nodes is known to do wrong, and the epoch and time at which it was identified.
type identified struct {
	flavour.Engine
	defect string
	epoch  int64
	at     time.Time
}

// maxIdentityAge is how long an identification is used: a node that was upgraded need not be one that requests are sent to.
const maxIdentityAge = 5 * time.Minute

// isSigned reports whether requests are signed. AWS answers a request that it does not accept before the engine sees it.
func (c *Client) isSigned() bool { return c.cfg.AWS != (AWS{}) }

// Defect returns what a node was known to do wrong when the engine was last identified, "" for nothing.
func (c *Client) Defect() string {
	if known := c.engine.Load(); known != nil {
		return known.defect
	}
	return ""
}

// Engine returns the cluster's engine. It is identified before the first use, and again after a new connection was made or a gateway
// found no node, as another engine may have taken over the address, or maxIdentityAge has passed. core.CodeIndexBlocked when it is not supported.
func (c *Client) Engine(ctx context.Context) (flavour.Engine, error) {
	known, epoch := c.engine.Load(), c.epoch.Load()
	if known != nil && known.epoch == epoch && time.Since(known.at) < maxIdentityAge {
		return known.Engine, nil
	}
	if c.cfg.AWS.Service == ServiceServerless { // it answers neither GET / nor _nodes
		engine, _, _ := flavour.Of(flavour.OpenSearch, flavour.Version{})
		c.engine.Store(&identified{Engine: engine, epoch: epoch, at: time.Now()})
		return engine, nil
	}
	id, err := c.Identify(ctx, AllNodes)
	if err == nil && id.Product == "" && (id.Response.Status == http.StatusUnauthorized || c.isSigned() && id.Response.Status == http.StatusForbidden || id.Response.Status == http.StatusTooManyRequests ||
		id.Response.Status >= http.StatusInternalServerError) {
		err = newResponseError(id.Response.Status, id.Response.Header, id.Response.Body)
	}
	if err != nil {
		if known != nil {
			return known.Engine, nil // the request that follows returns the error, if it lasts
		}
		return flavour.Engine{}, err
	}
	engine, why, ok := flavour.Of(id.Product, id.Version)
	if !ok {
		return flavour.Engine{}, core.NewError(core.CodeIndexBlocked, fmt.Sprintf("the index engine is %s; %s", id.Found(), why))
	}
	c.noteIdentified(&identified{engine, id.Defect, epoch, time.Now()})
	return engine, nil
}

// noteIdentified makes now the identified engine, and logs what differs from the last one.
func (c *Client) noteIdentified(now *identified) {
	last := c.engine.Swap(now) // of two calls at once one logs
	if last == nil || last.Engine != now.Engine {
		log := c.cfg.Logger.Info
		if !now.Tried() {
			log = c.cfg.Logger.Warn
		}
		log("identified the index engine", "product", now.Product, "version", now.Version.String(), "tested", now.Tried())
	}
	if now.defect != "" && (last == nil || last.defect != now.defect) {
		c.cfg.Logger.Warn("the version of the index engine has a known defect", "defect", now.defect)
	}
}
