package http

// routeKeys routes the API keys (CONTRACT section 6).
func (h *Handler) routeKeys() {}
