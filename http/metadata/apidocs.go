package metadata

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"tutti/http/api"
	"tutti/http/openapi"
	"tutti/internal/core"
)

// surfacePaths are the first segments of the paths that Song has as well.
var surfacePaths = []string{"schemas", "studies", "submit", "entities", "export", "isAlive"}

// registerAPIDocs adds GET /v2/api-docs, where clients of Song read the API's description: as OpenAPI 3.0, because they do not
// support 3.1.
func registerAPIDocs(r *api.Router) {
	document := sync.OnceValues(func() ([]byte, error) {
		whole, err := r.OpenAPI()
		if err != nil {
			return nil, err
		}
		described, err := openapi.Version30(whole, func(path string) bool {
			first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
			return slices.Contains(surfacePaths, first)
		})
		if err != nil {
			return nil, core.WrapError(core.CodeInternal, "making the OpenAPI document", err)
		}
		return described, nil
	})
	r.Handle(http.MethodGet, "/v2/api-docs", func(w http.ResponseWriter, _ *http.Request) error {
		body, err := document()
		if err == nil {
			api.WriteEncoded(w, body)
		}
		return err
	}, api.LenientParams(), api.Open())
}
