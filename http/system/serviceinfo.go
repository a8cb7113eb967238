package system

import (
	"cmp"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"tutti/http/api"
)

// serviceInfoBody is the Service of GA4GH's Service Info 1.0.0.
type serviceInfoBody struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Type names the API, not the program.
	Type struct {
		Group    string `json:"group"`
		Artifact string `json:"artifact"`
		Version  string `json:"version"`
	} `json:"type"`
	Description  string `json:"description,omitempty"`
	Organization struct {
		Name string `json:"name"`
		URL  string `json:"url"`
	} `json:"organization"`
	ContactURL       string `json:"contactUrl,omitempty"`
	DocumentationURL string `json:"documentationUrl"`
	Environment      string `json:"environment,omitempty"`
	Version          string `json:"version"`
}

// serviceInfo serves who runs this server, and what it is, for registries of services.
func (s *Surface) serviceInfo(router *api.Router) api.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		at, service := s.ports.Service.URL, s.ports.Service
		if at == "" {
			scheme := "http"
			if r.TLS != nil {
				scheme = "https"
			}
			at = (&url.URL{Scheme: scheme, Host: r.Host, Path: router.BasePath()}).String()
		}
		at = strings.TrimSuffix(at, "/")
		host := "localhost"
		if parsed, err := url.Parse(at); err == nil && parsed.Hostname() != "" {
			host = parsed.Hostname()
		}
		id := host
		if net.ParseIP(host) == nil {
			domain := strings.Split(host, ".")
			slices.Reverse(domain)
			id = strings.Join(domain, ".")
		}
		var body serviceInfoBody
		body.ID = cmp.Or(service.ID, id)
		body.Name = cmp.Or(service.Name, "tutti")
		body.Type.Group, body.Type.Artifact, body.Type.Version = "tutti", "tutti", "1.0"
		body.Description, body.Environment, body.ContactURL = service.Description, service.Environment, service.ContactURL
		body.Organization.Name, body.Organization.URL = cmp.Or(service.OrganizationName, host), cmp.Or(service.OrganizationURL, at)
		body.DocumentationURL = at + pathDocs
		body.Version = cmp.Or(service.Version, "unknown")
		return api.WriteJSON(w, http.StatusOK, body)
	}
}
