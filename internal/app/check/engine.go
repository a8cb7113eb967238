package check

import (
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
	// engineMajor is the version of Elasticsearch that tutti is made for.
	engineMajor = 8
	// productName is what an Elasticsearch calls itself in a header of each answer.
	productName = "Elasticsearch"
)

// engine asks an Elasticsearch questions. It never writes.
type engine struct {
	cfg    config.Index
	probes []*elastic.Probe // one of each node
	// node is one that answered as it should, at host; nil when none did.
	node *elastic.Probe
	host string
}

func newEngine(cfg config.Index) (*engine, error) {
	e := &engine{cfg: cfg}
	for _, node := range cfg.URLs() {
		of := engineConfig(cfg)
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

func engineConfig(cfg config.Index) elastic.Config {
	return elastic.Config{
		URLs: cfg.URLs(), Username: cfg.Username, Password: cfg.Password.Reveal(), APIKey: cfg.APIKey.Reveal(), CAFile: cfg.CAFile,
	}
}

func (e *engine) close() {
	for _, p := range e.probes {
		_ = p.Close() // nothing was written
	}
}

// nodes looks at each node, and keeps one that is right for further questions.
func (e *engine) nodes(ctx context.Context) []Finding {
	var found, silent []Finding
	for i, url := range e.cfg.URLs() {
		node, host := e.probes[i], hostOf(url)
		a, who, err := introduce(ctx, node)
		if err != nil {
			reason, hint := upstream.ConnectionFailure(err)
			if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
				hint = "give the authority's certificate as index.caFile"
			}
			silent = append(silent, Finding{subjectIndex, StatusFail, host + " does not answer: " + reason, hint})
			continue
		}
		f := e.judge(host, a, who)
		if f.Status != StatusFail && e.node == nil {
			e.node, e.host = node, host
		}
		found = append(found, f)
	}
	// Requests go around a node that does not answer, as long as another does.
	for i := range silent {
		if e.node != nil {
			silent[i].Status = StatusWarn
		}
	}
	return append(found, silent...)
}

// identity is what a node says it is.
type identity struct {
	ClusterName string `json:"cluster_name"`
	Version     struct {
		Number       string `json:"number"`
		Distribution string `json:"distribution"`
	} `json:"version"`
}

// introduce asks a node what it is, and gives the answer that counts. A node may lack GET /, which is a module of its
// own, and be whole otherwise: such a one is asked for its version as a node of its cluster.
func introduce(ctx context.Context, node *elastic.Probe) (elastic.Answer, identity, error) {
	var who identity
	a, err := node.Info(ctx)
	if err != nil {
		return a, who, err
	}
	if a.Product != productName || a.Status != http.StatusNotFound && a.Status != http.StatusMethodNotAllowed {
		// What is no JSON has no version either.
		_ = json.Unmarshal(a.Body, &who)
		return a, who, nil
	}
	as, err := node.Node(ctx)
	if err != nil {
		return as, who, err
	}
	var nodes struct {
		ClusterName string `json:"cluster_name"`
		Nodes       map[string]struct {
			Version string `json:"version"`
		} `json:"nodes"`
	}
	if as.Status == http.StatusNotFound || as.Status == http.StatusOK && json.Unmarshal(as.Body, &nodes) != nil {
		return a, who, nil
	}
	who.ClusterName = nodes.ClusterName
	for _, n := range nodes.Nodes {
		who.Version.Number = n.Version
	}
	return as, who, nil
}

// judge tells whether a node is one of an Elasticsearch that tutti can use.
func (e *engine) judge(host string, a elastic.Answer, who identity) Finding {
	if f, refused := e.refused(host, "say what it is", a); refused {
		return f
	}
	fail := func(message, hint string) Finding {
		return Finding{subjectIndex, StatusFail, host + " " + message, hint}
	}
	hint, version := "set index.url to an Elasticsearch 8", who.Version
	if version.Number == "" {
		return fail("is no Elasticsearch", hint)
	}
	if version.Distribution != "" || a.Product != productName {
		return fail(fmt.Sprintf("is no Elasticsearch but %s %s", orElse(version.Distribution, "another product"), version.Number), hint)
	}
	first, _, _ := strings.Cut(version.Number, ".")
	switch major, err := strconv.Atoi(first); {
	case err != nil || major < engineMajor:
		return fail("is Elasticsearch "+version.Number+", tutti needs 8", hint)
	case major > engineMajor:
		return Finding{subjectIndex, StatusWarn, fmt.Sprintf("%s is Elasticsearch %s, tutti is tried with 8", host, version.Number), ""}
	}
	return Finding{subjectIndex, StatusOK, fmt.Sprintf("%s is Elasticsearch %s, cluster %s", host, version.Number, who.ClusterName), ""}
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// refused puts in words why a node did not do what it was asked for; false for an answer that counts.
func (e *engine) refused(host, doing string, a elastic.Answer) (Finding, bool) {
	f := Finding{Subject: subjectIndex, Status: StatusFail}
	switch {
	case a.Status == http.StatusUnauthorized && e.cfg.Username == "" && e.cfg.APIKey == "":
		f.Message, f.Hint = host+" asks for credentials", "set index.username and index.password, or index.apiKey"
	case a.Status == http.StatusUnauthorized:
		f.Message, f.Hint = host+" refused the credentials", "check index.username and index.password, or index.apiKey"
	case a.Status == http.StatusForbidden:
		f.Message, f.Hint = host+" does not let this user "+doing, "give the user's role "+privilege(doing)
	case a.Status == http.StatusServiceUnavailable, a.Status == http.StatusTooManyRequests:
		f.Message, f.Hint = fmt.Sprintf("%s is not ready: it answered with status %d", host, a.Status), "wait until the cluster has started, and look at its log"
	case a.Status >= 300 && a.Status < 400:
		f.Message, f.Hint = host+" answered with a redirect", "set index.url to where it redirects"
	case a.Status >= 500 || a.Status == http.StatusNotFound && doing == "say what it is":
		f.Message, f.Hint = fmt.Sprintf("%s answered with status %d", host, a.Status), "check that index.url is an Elasticsearch and not another program"
	default:
		return f, false
	}
	return f, true
}

func privilege(doing string) string {
	if doing == "look at aliases" {
		return "the privilege view_index_metadata on the indices of tutti"
	}
	return "the cluster privilege monitor"
}
