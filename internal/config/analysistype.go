package config

import (
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	"tutti/internal/core"
)

// allowedHostPattern is a name or an address with or without a port; an IPv6 address with one stands in brackets.
const allowedHostPattern = `^([A-Za-z0-9._-]+(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?|[0-9A-Fa-f]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*)$`

// Schemas says how analyses are validated (CONTRACT section 7).
type Schemas struct {
	// EnforceLatest refuses an analysis of another version than the latest of its type.
	EnforceLatest bool
	// DefaultOptions are those of an analysis type for which none were ever given; a list without elements is nil.
	DefaultOptions      core.AnalysisOptions
	ExternalValidations ExternalValidations
}

// ExternalValidations says how the services are asked that validate values.
type ExternalValidations struct {
	// AllowedHosts are the only ones that are asked, host or host:port each; none allows any public address.
	AllowedHosts []string
	// Timeout bounds one call.
	Timeout time.Duration
}

func (s *Schemas) key() key {
	return object("schemas", "How analyses are validated.",
		flag("enforceLatest", &s.EnforceLatest, true, "Refuses an analysis of another version than the latest of its type."),
		object("defaultOptions", "Options of an analysis type for which none were ever given.",
			list("fileTypes", &s.DefaultOptions.FileTypes, nil, "Values that a file's fileType may have; none checks nothing."),
			key{
				name: "externalValidations", doc: "Services that are asked whether a value is valid.",
				elements: func(n int) [][]key {
					s.DefaultOptions.ExternalValidations = nil
					if n > 0 {
						s.DefaultOptions.ExternalValidations = make([]core.ExternalValidation, n)
					}
					return s.validationKeys()
				},
				present: s.validationKeys,
			}),
		object("externalValidations", "How the services are asked that validate values.",
			list("allowedHosts", &s.ExternalValidations.AllowedHosts, nil,
				"The only hosts that are asked, host or host:port each; none allows any public address. "+
					"Private and loopback addresses are asked only when they are listed.").
				matching(allowedHostPattern, "a host or host:port, without scheme or path"),
			duration("timeout", &s.ExternalValidations.Timeout, 5*time.Second, "Longest wait for one answer.")))
}

func (s *Schemas) validationKeys() [][]key {
	each := make([][]key, len(s.DefaultOptions.ExternalValidations))
	for i := range each {
		v := &s.DefaultOptions.ExternalValidations[i]
		each[i] = []key{
			text("url", &v.URL, "", "Address that is asked, in which every {study} and {value} is replaced.").needed().
				matching(urlPattern, "an absolute http or https URL"),
			text("jsonPath", &v.JSONPath, "", "Where the value stands in an analysis, such as experiment.donors[*].id.").needed(),
		}
	}
	return each
}

func (s *Schemas) validate(f *faults) {
	for i, v := range s.DefaultOptions.ExternalValidations {
		at := indexed("schemas.defaultOptions.externalValidations", i) + ".url"
		switch {
		case v.URL == "":
		case !absoluteHTTP(v.URL):
			f.add(at, "", "such as https://ids.example.org/{study}/{value}", "%q is not an absolute http or https URL", maskUser(v.URL))
		case hasUser(v.URL):
			f.add(at, "", "anybody who may read analysis types would see them", "the URL holds credentials")
		default:
			for _, token := range regexp.MustCompile(`\{[^{}]*\}`).FindAllString(v.URL, -1) {
				if token != "{study}" && token != "{value}" {
					f.add(at, "", "use {study} and {value}", "holds %s, which nothing replaces", token)
				}
			}
		}
	}
	for i, host := range s.ExternalValidations.AllowedHosts {
		if host != "" && !validHost(host) {
			f.add(indexed("schemas.externalValidations.allowedHosts", i), "", "such as ids.example.org or 10.0.0.7:8080",
				"%q is not a host or host:port", host)
		}
	}
}

// validHost reports whether s, which has the form of one, is a name or an address, with a port that there can be.
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
