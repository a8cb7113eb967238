package mcp

import (
	"net/http"
	"strings"

	"tutti/http/api"
	"tutti/internal/core"
)

// metadataPath is the path at which a client reads which tokens the endpoint accepts (RFC 9728, section 3).
const metadataPath = "/.well-known/oauth-protected-resource"

type resourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers,omitempty"`
	BearerMethods        []string `json:"bearer_methods_supported"`
	Name                 string   `json:"resource_name"`
}

// registerMetadata adds the metadata of the protected resource, and its URL to the challenges of the endpoint (RFC 9728, section 5.1).
func (s *Surface) registerMetadata(r *api.Router) {
	for _, path := range []string{metadataPath, metadataPath + Path} {
		r.Handle(http.MethodGet, path, func(w http.ResponseWriter, req *http.Request) error {
			return s.resourceMetadata(w, req, r.BasePath())
		}, api.StrictParams(), api.Open())
	}
	r.ExtendChallenges(func(req *http.Request) string {
		if !s.cfg.Auth || !r.Below(req, Path) {
			return ""
		}
		return `resource_metadata="` + s.baseURL(req, r.BasePath()) + metadataPath + Path + `"`
	})
}

func (s *Surface) resourceMetadata(w http.ResponseWriter, r *http.Request, basePath string) error {
	if !s.cfg.Auth {
		return core.NewError(core.CodeNotFound, "the server requires no tokens")
	}
	body := resourceMetadata{Resource: s.baseURL(r, basePath) + Path, BearerMethods: []string{"header"}, Name: "tutti"}
	if s.cfg.authorizes() {
		body.AuthorizationServers = []string{s.cfg.Issuer}
	}
	return api.WriteJSON(w, http.StatusOK, body)
}

// baseURL returns the URL of the server with its base path: the configured one, else that of the request.
func (s *Surface) baseURL(r *http.Request, basePath string) string {
	if s.cfg.PublicURL != "" {
		return strings.TrimRight(s.cfg.PublicURL, "/")
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host + basePath
}
