package http

import (
	_ "embed"
	"net/http"
	"strings"

	"tutti/internal/core"
)

// The parts of the OpenAPI document, one for each surface.
var (
	//go:embed indexing/openapi.yaml
	indexingDocument []byte
	//go:embed metadata/openapi.yaml
	metadataDocument []byte
	//go:embed search/openapi.yaml
	searchDocument []byte
	//go:embed system/openapi.yaml
	systemDocument []byte
)

func (h *Handler) serveOpenAPI(w http.ResponseWriter, _ *http.Request) error {
	document, err := h.openAPI()
	if err != nil {
		return core.WrapError(core.CodeInternal, "making the OpenAPI document", err)
	}
	if h.cfg.Examples != nil {
		document = []byte(strings.NewReplacer(h.cfg.Examples()...).Replace(string(document)))
	}
	writeEncoded(w, document)
	return nil
}
