package check

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"

	"tutti/internal/app/settings"
	"tutti/internal/base/tlsconfig"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/upstream"
	"tutti/internal/upstream/score"
)

const subjectSchemas = "schemas"

// schemasProbe checks Score and the validation services that the configuration or the analysis types in the store name.
func schemasProbe(cfg config.Schemas, opts Options, inspect inspectStore) probe {
	return func(ctx context.Context) []Finding {
		found := services(ctx, cfg, inspect)
		if cfg.Storage.URL != "" {
			found = append(found, storageFinding(ctx, cfg.Storage, opts))
		}
		return found
	}
}

// storageFinding requests an object that does not exist from Score.
func storageFinding(ctx context.Context, c config.Storage, opts Options) Finding {
	host := hostOf(c.URL)
	client, err := score.New(settings.Score(c, opts.Version))
	if err != nil {
		return Finding{subjectSchemas, StatusFail, core.MessageOf(err), core.HintOf(err)}
	}
	defer client.Close()
	switch err := client.Probe(ctx); core.CodeOf(err) {
	case "":
		return Finding{subjectSchemas, StatusOK, "Score at " + host + " answers", ""}
	case core.CodeUpstream:
		return Finding{subjectSchemas, StatusFail, "Score at " + host + ": " + core.MessageOf(err), storageHint(err)}
	default:
		reason, hint := c.TLS.Files("schemas.storage").Failure(err)
		return Finding{subjectSchemas, StatusFail, "Score at " + host + " does not answer: " + reason + "; nothing can be published until it does", hint}
	}
}

// storageHint names the key to change for a response of Score.
func storageHint(err error) string {
	if e, answered := errors.AsType[*upstream.StatusError](err); answered {
		answer := tlsconfig.Answer{Status: e.Status, Credentials: "schemas.storage.token", Address: "schemas.storage.url"}
		if _, hint := answer.Refusal(); hint != "" {
			return hint
		}
	}
	return "check schemas.storage.url and schemas.storage.token"
}

// services checks the validation services; without any there are no findings.
func services(ctx context.Context, cfg config.Schemas, inspect inspectStore) []Finding {
	allowed := cfg.ExternalValidations.AllowedHosts
	asked := askedServices(cfg, inspect)
	files := cfg.ExternalValidations.Files()
	if len(allowed) == 0 && len(asked) == 0 && cfg.ExternalValidations.TLS == (config.ClientTLS{}) {
		return nil
	}
	secure, err := tlsconfig.New(files)
	if err != nil {
		return []Finding{{subjectSchemas, StatusFail, core.MessageOf(err), core.HintOf(err)}}
	}
	message := "external validations may call any public address"
	if len(allowed) > 0 {
		message = "external validations may only call " + strings.Join(allowed, ", ")
	}
	all := slices.Clone(asked)
	for _, host := range allowed {
		t := hostTarget(host)
		if !slices.ContainsFunc(asked, func(s service) bool { return t.covers(s.target) }) {
			all = append(all, service{target: t})
		}
	}
	found := make([]*Finding, len(all))
	var work sync.WaitGroup
	for i, s := range all {
		work.Go(func() {
			if s.by != "" {
				found[i] = s.notAllowed(ctx, allowed)
			}
			if found[i] == nil {
				found[i] = s.unreachable(ctx, secure, files)
			}
		})
	}
	work.Wait()
	findings := []Finding{{subjectSchemas, StatusOK, message, ""}}
	for _, f := range found {
		if f != nil {
			findings = append(findings, *f)
		}
	}
	return findings
}

// service is the target of a validation service.
type service struct {
	target

	// by is what uses it, "" for an allowed host.
	by string
}

// askedServices returns the services that the default options and the analysis types in the store use: of each type the latest version, and
// the versions before as well if analyses of them are accepted.
func askedServices(cfg config.Schemas, inspect inspectStore) (asked []service) {
	add := func(by string, options datamodel.AnalysisOptions) {
		for _, v := range options.ExternalValidations {
			t, ok := targetOf(v.URL)
			if ok && !slices.ContainsFunc(asked, func(s service) bool { return s.host == t.host && s.port == t.port && s.https == t.https }) {
				asked = append(asked, service{t, by})
			}
		}
	}
	add("schemas.defaultOptions", cfg.DefaultOptions)
	r, err := inspect()
	if err != nil { // of which the finding about the store says why
		return asked
	}
	for i, t := range r.Analyses.Types { // by name and version
		if next := i + 1; cfg.EnforceLatest && next < len(r.Analyses.Types) && r.Analyses.Types[next].Name == t.Name {
			continue
		}
		add(fmt.Sprintf("version %d of the analysis type %q", t.Version, t.Name), t.Options)
	}
	return asked
}

// target is a host, and its port if known. https is set if it is known to use TLS. url is the template of a validation, if one is known.
type target struct {
	host, port string
	https      bool
	url        string
}

func (t target) String() string {
	if t.port == "" {
		return t.host
	}
	return net.JoinHostPort(t.host, t.port)
}

// targetOf returns the host and port of a URL template.
func targetOf(template string) (target, bool) {
	u, err := url.Parse(template)
	if err != nil || u.Hostname() == "" {
		return target{}, false
	}
	t := target{strings.ToLower(u.Hostname()), u.Port(), strings.EqualFold(u.Scheme, "https"), template}
	if t.port == "" {
		t.port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
	}
	return t, true
}

// hostTarget parses host or host:port.
func hostTarget(entry string) target {
	entry = strings.ToLower(entry)
	if host, port, err := net.SplitHostPort(entry); err == nil {
		return target{host: host, port: port}
	}
	return target{host: strings.Trim(entry, "[]")}
}

// covers reports whether the allowed target t includes other.
func (t target) covers(other target) bool {
	return t.host == other.host && (t.port == "" || t.port == other.port)
}

// notAllowed returns a finding when a service is not allowed, else nil.
func (t service) notAllowed(ctx context.Context, allowed []string) *Finding {
	listed := slices.ContainsFunc(allowed, func(entry string) bool { return hostTarget(entry).covers(t.target) })
	message := fmt.Sprintf("%s uses %s, which is not an allowed host", t.by, t)
	switch {
	case listed:
		return nil
	case len(allowed) > 0:
	case t.public(ctx):
		return nil
	default:
		message = fmt.Sprintf("%s uses %s, which is not a public address and must be allowed", t.by, t)
	}
	return &Finding{subjectSchemas, StatusFail, message, fmt.Sprintf("add %s to schemas.externalValidations.allowedHosts", t)}
}

// public reports whether t has no known address of a private network or of this machine.
func (t target) public(ctx context.Context) bool {
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", t.host)
	return err != nil || !slices.ContainsFunc(addresses, func(a netip.Addr) bool {
		a = a.Unmap()
		return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified()
	})
}

// validate has a value that no service knows validated, and returns the status: a server refuses the certificate of a client only after the
// handshake.
func validate(ctx context.Context, secure *tlsconfig.Source, template string) (status int, err error) {
	transport := secure.RoundTripper(&http.Transport{})
	defer transport.CloseIdleConnections()
	address := strings.NewReplacer("{study}", checkedValue, "{value}", checkedValue).Replace(template)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, err
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

// checkedValue is the value and the study of a request to an external validation service.
const checkedValue = "tutti-check"

// unreachable returns a finding when t cannot be reached, or rejects requests. Without a port it only resolves the name.
func (t target) unreachable(ctx context.Context, secure *tlsconfig.Source, files tlsconfig.Files) *Finding {
	var err error
	switch {
	case t.port == "":
		_, err = net.DefaultResolver.LookupNetIP(ctx, "ip", t.host)
	case t.url != "":
		var answer tlsconfig.Answer
		answer.Status, err = validate(ctx, secure, t.url)
		if answer.AboutCredentials() {
			answer.Credentials = files.Name("clientCertFile") + " and the url of the validation"
			reason, hint := answer.Refusal()
			return &Finding{subjectSchemas, StatusWarn, fmt.Sprintf("%s: %s; values that it validates are rejected until it does not", t, reason), hint}
		}
	default:
		var conn net.Conn
		if conn, err = new(net.Dialer).DialContext(ctx, "tcp", t.String()); err == nil {
			_ = conn.Close() // nothing was sent
		}
	}
	if err == nil {
		return nil
	}
	reason, hint := files.Failure(err)
	return &Finding{
		subjectSchemas, StatusWarn, fmt.Sprintf("%s does not answer: %s; values that it validates are rejected until it does", t, reason), hint,
	}
}
