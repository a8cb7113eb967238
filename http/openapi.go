package http

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"strings"

	"tutti/internal/core"
)

//go:embed openapi.json
var openAPIDocument []byte

// openAPIFor returns the OpenAPI document for a base path and a version of the program.
func openAPIFor(basePath, version string) ([]byte, error) {
	var document map[string]json.RawMessage
	if err := json.Unmarshal(openAPIDocument, &document); err != nil {
		return nil, core.WrapError(core.CodeInternal, "reading the OpenAPI document", err)
	}
	var info map[string]any
	if err := json.Unmarshal(document["info"], &info); err != nil {
		return nil, core.WrapError(core.CodeInternal, "reading the OpenAPI document's info", err)
	}
	info["version"] = version
	server := basePath
	if server == "" {
		server = "/"
	}
	for name, value := range map[string]any{"info": info, "servers": []any{map[string]string{"url": server}}} {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, core.WrapError(core.CodeInternal, "writing the OpenAPI document", err)
		}
		document[name] = raw
	}
	b, err := json.Marshal(document)
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "writing the OpenAPI document", err)
	}
	return b, nil
}

func (h *Handler) serveOpenAPI(w http.ResponseWriter, _ *http.Request) error {
	document := h.openAPI
	if h.cfg.Examples != nil {
		document = []byte(strings.NewReplacer(h.cfg.Examples()...).Replace(string(document)))
	}
	writeEncoded(w, document)
	return nil
}
