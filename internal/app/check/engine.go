package check

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"tutti/internal/config"
	"tutti/internal/upstream"
)

const (
	// engineMajor is the version of Elasticsearch that tutti is made for.
	engineMajor = 8
	// productName is what an Elasticsearch calls itself in a header of each answer.
	productName = "Elasticsearch"
	// maxEngineAnswer bounds an answer.
	maxEngineAnswer = 1 << 20
)

// engine asks an Elasticsearch questions. It never writes.
type engine struct {
	cfg  config.Index
	http *http.Client
	// node is the URL of a node that answered as it should, empty when none did.
	node string
}

func newEngine(cfg config.Index) (*engine, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	if cfg.CAFile != "" {
		pem, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("%s cannot be read: %s", cfg.CAFile, cause(err))
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate", cfg.CAFile)
		}
	}
	return &engine{cfg: cfg, http: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func (e *engine) close() { e.http.CloseIdleConnections() }

// answer is what a node said.
type answer struct {
	status int
	// product is the header by which Elasticsearch names itself.
	product string
	body    []byte
}

func (e *engine) ask(ctx context.Context, method, node, path string, body []byte) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(node, "/")+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Accept", "application/json")
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	switch {
	case e.cfg.APIKey != "":
		req.Header.Set("Authorization", "ApiKey "+e.cfg.APIKey.Reveal())
	case e.cfg.Username != "":
		req.SetBasicAuth(e.cfg.Username, e.cfg.Password.Reveal())
	}
	resp, err := e.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(io.LimitReader(resp.Body, maxEngineAnswer))
	return answer{resp.StatusCode, resp.Header.Get("X-Elastic-Product"), content}, err
}

// nodes looks at each node, and keeps one that is right for further questions.
func (e *engine) nodes(ctx context.Context) []Finding {
	var found, silent []Finding
	for _, node := range e.cfg.URLs() {
		a, who, err := e.introduce(ctx, node)
		if err != nil {
			reason, hint := upstream.Unreached(err)
			if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
				hint = "give the authority's certificate as index.caFile"
			}
			silent = append(silent, Finding{subjectIndex, StatusFail, hostOf(node) + " does not answer: " + reason, hint})
			continue
		}
		f := e.judge(hostOf(node), a, who)
		if f.Status != StatusFail && e.node == "" {
			e.node = node
		}
		found = append(found, f)
	}
	// Requests go around a node that does not answer, as long as another does.
	for i := range silent {
		if e.node != "" {
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
func (e *engine) introduce(ctx context.Context, node string) (answer, identity, error) {
	var who identity
	a, err := e.ask(ctx, http.MethodGet, node, "/", nil)
	if err != nil {
		return a, who, err
	}
	if a.product != productName || a.status != http.StatusNotFound && a.status != http.StatusMethodNotAllowed {
		// What is no JSON has no version either.
		_ = json.Unmarshal(a.body, &who)
		return a, who, nil
	}
	as, err := e.ask(ctx, http.MethodGet, node, "/_nodes/_local/http?filter_path=cluster_name,nodes.*.version", nil)
	if err != nil {
		return as, who, err
	}
	var nodes struct {
		ClusterName string `json:"cluster_name"`
		Nodes       map[string]struct {
			Version string `json:"version"`
		} `json:"nodes"`
	}
	if as.status == http.StatusNotFound || as.status == http.StatusOK && json.Unmarshal(as.body, &nodes) != nil {
		return a, who, nil
	}
	who.ClusterName = nodes.ClusterName
	for _, n := range nodes.Nodes {
		who.Version.Number = n.Version
	}
	return as, who, nil
}

// judge tells whether a node is one of an Elasticsearch that tutti can use.
func (e *engine) judge(host string, a answer, who identity) Finding {
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
	if version.Distribution != "" || a.product != productName {
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
func (e *engine) refused(host, doing string, a answer) (Finding, bool) {
	f := Finding{Subject: subjectIndex, Status: StatusFail}
	switch {
	case a.status == http.StatusUnauthorized && e.cfg.Username == "" && e.cfg.APIKey == "":
		f.Message, f.Hint = host+" asks for credentials", "set index.username and index.password, or index.apiKey"
	case a.status == http.StatusUnauthorized:
		f.Message, f.Hint = host+" refused the credentials", "check index.username and index.password, or index.apiKey"
	case a.status == http.StatusForbidden:
		f.Message, f.Hint = host+" does not let this user "+doing, "give the user's role "+privilege(doing)
	case a.status == http.StatusServiceUnavailable, a.status == http.StatusTooManyRequests:
		f.Message, f.Hint = fmt.Sprintf("%s is not ready: it answered with status %d", host, a.status), "wait until the cluster has started, and look at its log"
	case a.status >= 300 && a.status < 400:
		f.Message, f.Hint = host+" answered with a redirect", "set index.url to where it redirects"
	case a.status >= 500 || a.status == http.StatusNotFound && doing == "say what it is":
		f.Message, f.Hint = fmt.Sprintf("%s answered with status %d", host, a.status), "check that index.url is an Elasticsearch and not another program"
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
