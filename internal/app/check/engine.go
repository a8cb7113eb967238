package check

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"tutti/internal/config"
	"tutti/internal/index/elastic"
	"tutti/internal/upstream"
)

const (
	// engineMajor is the major version of Elasticsearch that tutti supports.
	engineMajor = 8
	// productName is the X-Elastic-Product header of each response of an Elasticsearch.
	productName = "Elasticsearch"
)

// engine probes an Elasticsearch. It never writes.
type engine struct {
	cfg    config.Index
	probes []*elastic.Probe // one of each node
	// node is a usable node, at host; nil when there is none.
	node *elastic.Probe
	host string
}

func newEngine(cfg config.Index) (*engine, error) {
	e := &engine{cfg: cfg}
	for _, node := range cfg.URLs() {
		of := connection(cfg)
		of.URLs = []string{node}
		p, err := elastic.NewProbe(of)
		if err != nil {
			e.close()
			return nil, err
		}
		e.probes = append(e.probes, p)
	}
	return e, nil
}

func connection(cfg config.Index) elastic.Connection {
	return elastic.Connection{
		URLs: cfg.URLs(), Username: cfg.Username, Password: cfg.Password.Reveal(), APIKey: cfg.APIKey.Reveal(), CAFile: cfg.CAFile,
	}
}

func (e *engine) close() {
	for _, p := range e.probes {
		_ = p.Close() // nothing was written
	}
}

// nodes probes each node, and sets e.node to the first usable one.
func (e *engine) nodes(ctx context.Context) []Finding {
	var found, silent []Finding
	for i, url := range e.cfg.URLs() {
		node, host := e.probes[i], hostOf(url)
		a, id, err := identify(ctx, node)
		if err != nil {
			reason, hint := upstream.ConnectionFailure(err)
			if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
				hint = "set index.caFile to the authority's certificate"
			}
			silent = append(silent, Finding{subjectIndex, StatusFail, host + " does not answer: " + reason, hint})
			continue
		}
		f := e.nodeFinding(host, a, id)
		if f.Status != StatusFail && e.node == nil {
			e.node, e.host = node, host
		}
		found = append(found, f)
	}
	// Requests go to another node when one does not answer.
	for i := range silent {
		if e.node != nil {
			silent[i].Status = StatusWarn
		}
	}
	return append(found, silent...)
}

// identity is the product and version that a node reports.
type identity struct {
	ClusterName string `json:"cluster_name"`
	Version     struct {
		Number       string `json:"number"`
		Distribution string `json:"distribution"`
	} `json:"version"`
}

// identify returns the identity of a node and the response that it was read from. A node may lack the module that serves GET
// /; the version is then read from the nodes API.
func identify(ctx context.Context, node *elastic.Probe) (elastic.Response, identity, error) {
	var id identity
	a, err := node.Info(ctx)
	if err != nil {
		return a, id, err
	}
	if a.Product != productName || a.Status != http.StatusNotFound && a.Status != http.StatusMethodNotAllowed {
		// A body that is not JSON leaves the version empty.
		_ = json.Unmarshal(a.Body, &id)
		return a, id, nil
	}
	nodesAnswer, err := node.Node(ctx)
	if err != nil {
		return nodesAnswer, id, err
	}
	var nodes struct {
		ClusterName string `json:"cluster_name"`
		Nodes       map[string]struct {
			Version string `json:"version"`
		} `json:"nodes"`
	}
	if nodesAnswer.Status == http.StatusNotFound || nodesAnswer.Status == http.StatusOK && json.Unmarshal(nodesAnswer.Body, &nodes) != nil {
		return a, id, nil
	}
	id.ClusterName = nodes.ClusterName
	for _, n := range nodes.Nodes {
		id.Version.Number = n.Version
	}
	return nodesAnswer, id, nil
}

// nodeFinding reports whether tutti can use a node.
func (e *engine) nodeFinding(host string, a elastic.Response, id identity) Finding {
	if f, refused := e.rejected(host, "read its version", a); refused {
		return f
	}
	fail := func(message, hint string) Finding {
		return Finding{subjectIndex, StatusFail, host + " " + message, hint}
	}
	hint, version := "set index.url to an Elasticsearch 8", id.Version
	if version.Number == "" {
		return fail("is not Elasticsearch", hint)
	}
	if version.Distribution != "" || a.Product != productName {
		return fail(fmt.Sprintf("is not Elasticsearch but %s %s", cmp.Or(version.Distribution, "another product"), version.Number), hint)
	}
	first, _, _ := strings.Cut(version.Number, ".")
	switch major, err := strconv.Atoi(first); {
	case err != nil || major < engineMajor:
		return fail("is Elasticsearch "+version.Number+"; tutti requires 8", hint)
	case major > engineMajor:
		return Finding{subjectIndex, StatusWarn, fmt.Sprintf("%s is Elasticsearch %s; tutti is tested with 8", host, version.Number), ""}
	}
	return Finding{subjectIndex, StatusOK, fmt.Sprintf("%s is Elasticsearch %s, cluster %s", host, version.Number, id.ClusterName), ""}
}

// rejected returns the finding for a request that a node rejected; false if it did not.
func (e *engine) rejected(host, doing string, a elastic.Response) (Finding, bool) {
	f := Finding{Subject: subjectIndex, Status: StatusFail}
	switch {
	case a.Status == http.StatusUnauthorized && e.cfg.Username == "" && e.cfg.APIKey == "":
		f.Message, f.Hint = host+" requires credentials", "set index.username and index.password, or index.apiKey"
	case a.Status == http.StatusUnauthorized:
		f.Message, f.Hint = host+" refused the credentials", "check index.username and index.password, or index.apiKey"
	case a.Status == http.StatusForbidden:
		f.Message, f.Hint = host+" does not let this user "+doing, "grant the user's role "+privilege(doing)
	case a.Status == http.StatusServiceUnavailable, a.Status == http.StatusTooManyRequests:
		f.Message, f.Hint = fmt.Sprintf("%s is not ready: it answered with status %d", host, a.Status), "wait until the cluster has started, and check its log"
	case a.Status >= 300 && a.Status < 400:
		f.Message, f.Hint = host+" answered with a redirect", "set index.url to where it redirects"
	case a.Status >= 500 || a.Status == http.StatusNotFound && doing == "read its version":
		f.Message, f.Hint = fmt.Sprintf("%s answered with status %d", host, a.Status), "check that index.url is the address of an Elasticsearch"
	default:
		return f, false
	}
	return f, true
}

func privilege(doing string) string {
	if doing == "read aliases" {
		return "the privilege view_index_metadata on tutti's indices"
	}
	return "the cluster privilege monitor"
}
