package http

// routeStudies routes the built-in metadata repository (CONTRACT section 8).
func (h *Handler) routeStudies() {}
