package check

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"tutti/internal/app/settings"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/index/elastic"
	"tutti/internal/index/elastic/flavour"
)

// engine probes a search engine. It never writes.
type engine struct {
	cfg    config.Index
	probes []*elastic.Probe // one of each node
	// node is a usable node, at host; nil when there is none.
	node *elastic.Probe
	host string
	// privileges are those that its engine needs.
	privileges flavour.Privileges
}

func newEngine(cfg config.Index) (*engine, error) {
	e := &engine{cfg: cfg}
	for _, node := range cfg.URLs() {
		of := settings.Connection(cfg)
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

func (e *engine) close() {
	for _, p := range e.probes {
		_ = p.Close() // nothing was written
	}
}

// nodes probes each node, and sets e.node to the first usable one.
func (e *engine) nodes(ctx context.Context) []Finding {
	var found, silent []Finding
	defective := false
	for i, url := range e.cfg.URLs() {
		node, host := e.probes[i], hostOf(url)
		id, err := node.Identify(ctx)
		if err != nil {
			files := e.cfg.TLS.Files(subjectIndex)
			reason, hint := files.Failure(err)
			if known, is := errors.AsType[*core.Error](err); is && known.Hint != "" && known.Hint != hint {
				silent = append(silent, Finding{subjectIndex, StatusFail, host + ": " + known.Message, known.Hint})
				continue
			}
			silent = append(silent, Finding{subjectIndex, StatusFail, host + " does not answer: " + reason, hint})
			continue
		}
		f := e.nodeFinding(host, id)
		defective = defective || id.Defect != ""
		if f.Status != StatusFail && e.node == nil {
			e.node, e.host = node, host
		}
		found = append(found, f)
	}
	if e.node != nil && !defective {
		if defect := e.node.Defect(ctx); defect != "" {
			found = append(found, Finding{subjectIndex, StatusWarn, "another node of the cluster has a defect: " + defect, ""})
		}
	}
	// Requests go to another node when one does not answer.
	for i := range silent {
		if e.node != nil {
			silent[i].Status = StatusWarn
		}
	}
	return append(found, silent...)
}

// nodeFinding reports whether tutti can use a node.
func (e *engine) nodeFinding(host string, id elastic.Identity) Finding {
	if e.cfg.AWS.Region != "" && e.cfg.AWS.Service == elastic.ServiceServerless {
		return Finding{subjectIndex, StatusWarn, host + " is an OpenSearch Serverless, which does not return its version; tutti is not tested with it", ""}
	}
	e.privileges = privileges(id.Product)
	if f, refused := e.rejected(host, "read its version", id.Response); refused {
		return f
	}
	const hint = "set index.url to one of these"
	engine, why, ok := flavour.Of(id.Product, id.Version)
	switch {
	case !ok:
		return Finding{subjectIndex, StatusFail, fmt.Sprintf("%s is %s; %s", host, id.Found(), why), hint}
	case id.Version == (flavour.Version{}):
		return Finding{subjectIndex, StatusFail, fmt.Sprintf("%s is %s, but does not return its version; %s", host, engine, flavour.Requirement), hint}
	case id.Defect != "":
		return Finding{subjectIndex, StatusWarn, host + " has a defect: " + id.Defect, ""}
	case !engine.Tried():
		return Finding{subjectIndex, StatusWarn, fmt.Sprintf("%s is %s, cluster %s; tutti is not tested with this major version", host, engine, id.ClusterName), ""}
	default:
		return Finding{subjectIndex, StatusOK, fmt.Sprintf("%s is %s, cluster %s", host, engine, id.ClusterName), ""}
	}
}

// rejected returns the finding for a request that a node rejected; false if it did not.
func (e *engine) rejected(host, doing string, a elastic.Response) (Finding, bool) {
	f := Finding{Subject: subjectIndex, Status: StatusFail}
	switch {
	case e.cfg.AWS.Region != "" && (a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden):
		f.Message, f.Hint = host+" refused a signed request", "check index.aws, the credentials, this machine's clock, and the access policy of the domain"
	case a.Status == http.StatusUnauthorized && e.cfg.Username == "" && e.cfg.APIKey == "":
		f.Message, f.Hint = host+" requires credentials", "set index.username and index.password, or index.apiKey"
	case a.Status == http.StatusUnauthorized:
		f.Message, f.Hint = host+" refused the credentials", "check index.username and index.password, or index.apiKey"
	case a.Status == http.StatusForbidden:
		f.Message, f.Hint = host+" does not let this user "+doing, e.privileges.Hint("each indexName and indexName-*")
	case a.Status == http.StatusServiceUnavailable, a.Status == http.StatusTooManyRequests:
		f.Message, f.Hint = fmt.Sprintf("%s is not ready: it answered with status %d", host, a.Status), "wait until the cluster has started, and check its log"
	case a.Status >= 300 && a.Status < 400:
		f.Message, f.Hint = host+" answered with a redirect", "set index.url to where it redirects"
	case a.Status >= 500 || a.Status == http.StatusNotFound && doing == "read its version":
		f.Message, f.Hint = fmt.Sprintf("%s answered with status %d", host, a.Status), "check that index.url is the address of an Elasticsearch or OpenSearch"
	default:
		return f, false
	}
	return f, true
}

// privileges returns those that a product needs, those of Elasticsearch for an unknown one.
func privileges(product flavour.Product) flavour.Privileges {
	engine, _, ok := flavour.Of(product, flavour.Version{})
	if !ok {
		engine, _, _ = flavour.Of(flavour.Elasticsearch, flavour.Version{})
	}
	return engine.Privileges
}
