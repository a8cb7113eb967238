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

	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/tlsconfig"
	"tutti/internal/upstream"
	"tutti/internal/upstream/score"
)

const subjectSchemas = "schemas"

// schemasProbe checks Score and the validation services that the configuration names; nil when it names none.
func schemasProbe(cfg config.Schemas, opts Options) probe {
	services := servicesProbe(cfg)
	switch {
	case cfg.Storage.URL == "":
		return services
	case services == nil:
		return func(ctx context.Context) []Finding { return []Finding{storageFinding(ctx, cfg.Storage, opts)} }
	default:
		return func(ctx context.Context) []Finding {
			return append(services(ctx), storageFinding(ctx, cfg.Storage, opts))
		}
	}
}

// Score returns the settings of the client of Score.
func Score(c config.Storage, version string) score.Config {
	return score.Config{
		URL: c.URL, Token: c.Token.Reveal(), Timeout: c.Timeout, UserAgent: "tutti/" + version, TLS: c.TLS.Files("schemas.storage"),
	}
}

// storageFinding requests an object that does not exist from Score.
func storageFinding(ctx context.Context, c config.Storage, opts Options) Finding {
	host := hostOf(c.URL)
	client, err := score.New(Score(c, opts.Version))
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

// servicesProbe checks the validation services; nil without any.
func servicesProbe(cfg config.Schemas) probe {
	allowed := cfg.ExternalValidations.AllowedHosts
	var asked []target
	for _, v := range cfg.DefaultOptions.ExternalValidations {
		if t, ok := targetOf(v.URL); ok && !slices.ContainsFunc(asked, func(a target) bool { return a.host == t.host && a.port == t.port && a.https == t.https }) {
			asked = append(asked, t)
		}
	}
	files := cfg.ExternalValidations.Files()
	if len(allowed) == 0 && len(asked) == 0 && cfg.ExternalValidations.TLS == (config.ClientTLS{}) {
		return nil
	}
	return func(ctx context.Context) []Finding {
		secure, err := tlsconfig.New(files)
		if err != nil {
			return []Finding{{subjectSchemas, StatusFail, core.MessageOf(err), core.HintOf(err)}}
		}
		message := "external validations may call any public address"
		if len(allowed) > 0 {
			message = "external validations may only call " + strings.Join(allowed, ", ")
		}
		targets := slices.Clone(asked)
		for _, host := range allowed {
			if t := hostTarget(host); !slices.ContainsFunc(asked, t.covers) {
				targets = append(targets, t)
			}
		}
		found := make([]*Finding, len(targets))
		var work sync.WaitGroup
		for i, t := range targets {
			work.Go(func() {
				if i < len(asked) {
					found[i] = t.notAllowed(ctx, allowed)
				}
				if found[i] == nil {
					found[i] = t.unreachable(ctx, secure, files)
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

// notAllowed returns a finding when the default options use a target that is not allowed, else nil.
func (t target) notAllowed(ctx context.Context, allowed []string) *Finding {
	listed := slices.ContainsFunc(allowed, func(entry string) bool { return hostTarget(entry).covers(t) })
	message := fmt.Sprintf("schemas.defaultOptions uses %s, which is not an allowed host", t)
	switch {
	case listed:
		return nil
	case len(allowed) > 0:
	case t.public(ctx):
		return nil
	default:
		message = fmt.Sprintf("schemas.defaultOptions uses %s, which is not a public address and must be allowed", t)
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
