package config

import (
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	"tutti/internal/base/setting"
	"tutti/internal/base/tlsconfig"
	"tutti/internal/core/datamodel"
)

// allowedHostPattern matches a host name or address with or without a port; an IPv6 address with a port is in brackets.
const allowedHostPattern = `^([A-Za-z0-9._-]+(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?|[0-9A-Fa-f]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*)$`

// SeedSong is the value of Schemas.Seed for the analysis types of a new Song.
const SeedSong = "song"

// Schemas configures the validation of analyses (CONTRACT section 7).
type Schemas struct {
	// EnforceLatest rejects analyses that are not of the latest version of their type.
	EnforceLatest bool
	// Seed is SeedSong to register Song's analysis types in a store without any, or empty.
	Seed string
	// ValidationTimeout bounds the validation of one analysis by its schema.
	ValidationTimeout time.Duration
	// DefaultOptions are the options of an analysis type registered without options; an empty list is nil.
	DefaultOptions      datamodel.AnalysisOptions
	ExternalValidations ExternalValidations
	Storage             Storage
}

// Storage configures the check of an analysis' files in Score before its publication.
type Storage struct {
	// URL is the base URL of Score; empty turns the check off.
	URL string
	// Token is sent as a bearer token.
	Token setting.Secret
	// Timeout bounds the check of one analysis.
	Timeout time.Duration
	TLS     ClientTLS
}

// ExternalValidations configures calls to external validation services.
type ExternalValidations struct {
	// AllowedHosts are the only hosts that are called, host or host:port each; empty allows any public address.
	AllowedHosts []string
	// Timeout bounds one call.
	Timeout time.Duration
	// TLS has no ServerName: the services have several names.
	TLS ClientTLS
}

// Files returns the files of the connections to the services.
func (e ExternalValidations) Files() tlsconfig.Files {
	files := e.TLS.Files("schemas.externalValidations")
	files.ManyServers = true
	return files
}

func (s *Schemas) key() setting.Key {
	return setting.Object("schemas", "Validation of analyses.",
		setting.Flag("enforceLatest", &s.EnforceLatest, true, "Rejects analyses that are not of the latest version of their type."),
		setting.Text("seed", &s.Seed, "", "song: a store without any analysis type starts with Song's, variantCall and sequencingRead; "+
			"empty: with none.").OneOf("", SeedSong),
		setting.Duration("validationTimeout", &s.ValidationTimeout, 10*time.Second, "Longest validation of one analysis by a schema, without "+
			"external services. A version that takes longer rejects all analyses until a later version is registered."),
		setting.Object("defaultOptions", "Options of an analysis type registered without options.",
			setting.List("fileTypes", &s.DefaultOptions.FileTypes, nil, "Allowed values of a file's fileType; empty allows any."),
			setting.Objects("externalValidations", "Services that validate values.", func(n int) {
				s.DefaultOptions.ExternalValidations = nil
				if n > 0 {
					s.DefaultOptions.ExternalValidations = make([]datamodel.ExternalValidation, n)
				}
			}, s.validationKeys)),
		setting.Object("externalValidations", "Calls to external validation services.", append([]setting.Key{
			setting.List("allowedHosts", &s.ExternalValidations.AllowedHosts, nil,
				"The only hosts that are called, host or host:port each; empty allows any public address. "+
					"Private and loopback addresses are called only when listed.").
				Matching(allowedHostPattern, "a host or host:port, without scheme or path"),
			setting.Duration("timeout", &s.ExternalValidations.Timeout, 5*time.Second, "Timeout of one call."),
		}, s.ExternalValidations.TLS.fileKeys()...)...),
		setting.Object("storage", "Check that Score has the files of an analysis, with the same sizes and MD5 sums, before it is published.", append([]setting.Key{
			setting.Text("url", &s.Storage.URL, "", "Base URL of Score; empty publishes without a check.").
				Matching(urlPattern, "an absolute http or https URL"),
			setting.SecretText("token", &s.Storage.Token, "Bearer token for Score."),
			setting.Duration("timeout", &s.Storage.Timeout, 30*time.Second, "Timeout of the check of one analysis."),
		}, s.Storage.TLS.keys()...)...))
}

func (s *Schemas) validationKeys() [][]setting.Key {
	each := make([][]setting.Key, len(s.DefaultOptions.ExternalValidations))
	for i := range each {
		v := &s.DefaultOptions.ExternalValidations[i]
		each[i] = []setting.Key{
			setting.Text("url", &v.URL, "", "URL to call; {study} and {value} are replaced.").Require().
				Matching(urlPattern, "an absolute http or https URL"),
			setting.Text("jsonPath", &v.JSONPath, "", "Path of the value in an analysis, such as experiment.donors[*].id.").Require(),
		}
	}
	return each
}

func (s *Schemas) validate(f *setting.ErrorList) {
	for i, v := range s.DefaultOptions.ExternalValidations {
		at := setting.Indexed("schemas.defaultOptions.externalValidations", i) + ".url"
		switch {
		case v.URL == "":
		case !absoluteHTTP(v.URL):
			f.Add(at, "", "such as https://ids.example.org/{study}/{value}", "%q is not an absolute http or https URL", setting.MaskUser(v.URL))
		case hasUser(v.URL):
			f.Add(at, "", "any caller who can read analysis types would see them", "the URL contains credentials")
		default:
			for _, token := range regexp.MustCompile(`\{[^{}]*\}`).FindAllString(v.URL, -1) {
				if token != "{study}" && token != "{value}" {
					f.Add(at, "", "use {study} and {value}", "contains the unknown placeholder %s", token)
				}
			}
		}
	}
	s.Storage.validate(f)
	s.ExternalValidations.TLS.validate("schemas.externalValidations", f)
	for i, host := range s.ExternalValidations.AllowedHosts {
		if host != "" && !validHost(host) {
			f.Add(setting.Indexed("schemas.externalValidations.allowedHosts", i), "", "such as ids.example.org or 10.0.0.7:8080",
				"%q is not a host or host:port", host)
		}
	}
}

func (s Storage) validate(f *setting.ErrorList) {
	const at = "schemas.storage.url"
	s.TLS.validateFor("schemas.storage", "url", s.URL, f)
	switch {
	case s.URL == "" && s.Token != "":
		f.Add(at, "", "set it, or remove the token", "is missing")
	case s.URL == "":
	case !absoluteHTTP(s.URL):
		f.Add(at, "", "such as https://score.example.org", "%q is not an absolute http or https URL", setting.MaskUser(s.URL))
	case hasUser(s.URL):
		f.Add(at, "", "use schemas.storage.token", "the URL contains credentials")
	case strings.ContainsAny(s.URL, "?#"):
		f.Add(at, "", "", "%q has a query or a fragment", setting.MaskUser(s.URL))
	}
}

// validHost reports whether s, which matches allowedHostPattern, is a valid name or address, with a valid port.
func validHost(s string) bool {
	if addr, err := netip.ParseAddr(s); err == nil {
		return addr.Zone() == ""
	}
	host, bracketed := s, strings.HasPrefix(s, "[")
	if h, port, err := net.SplitHostPort(s); err == nil {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return false
		}
		host = h
	}
	if bracketed {
		addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
		return err == nil && addr.Is6() && addr.Zone() == ""
	}
	return !strings.Contains(host, ":") && strings.Trim(host, ".-") != "" && !strings.Contains(host, "..")
}
