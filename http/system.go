package http

import (
	"context"
	"net/http"
	"time"

	"tutti/internal/core"
)

// healthTimeout bounds the probes of the components.
const healthTimeout = 5 * time.Second

type readyBody struct {
	Status core.CatalogueStatus `json:"status"`
	// Ready is false exactly when the answer is 503.
	Ready bool `json:"ready"`
	// Reasons describes what is wrong, one sentence for each.
	Reasons    []string                  `json:"reasons"`
	Components map[string]ComponentState `json:"components"`
	Paused     []Pause                   `json:"paused"`
}

type pingBody struct {
	Message string `json:"message"`
}

func (h *Handler) ping(w http.ResponseWriter, r *http.Request) error {
	h.writeJSON(w, r, http.StatusOK, contentTypeJSON, pingBody{Message: "tutti is alive"})
	return nil
}

// ready answers 503, with the same body, when the catalogues are unhealthy or what Requests are kept in is down
// (CONTRACT section 0).
func (h *Handler) ready(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), healthTimeout)
	defer cancel()
	health := h.ports.Readiness.Health(ctx)
	catalogues := h.ports.Catalogues.Catalogues()
	body := readyBody{
		Status: catalogues.Status(), Reasons: append([]string{}, health.Reasons...), Components: health.Components, Paused: health.Paused,
	}
	for _, p := range health.Paused {
		body.Reasons = append(body.Reasons, "repository "+p.Repository+" is paused: "+p.Reason)
	}
	for _, c := range catalogues.Catalogues {
		if c.Problem != nil {
			body.Reasons = append(body.Reasons, "catalogue "+c.ID+" failed: "+c.Problem.Message)
		}
	}
	if body.Components == nil {
		body.Components = map[string]ComponentState{}
	}
	if body.Paused == nil {
		body.Paused = []Pause{}
	}
	body.Ready = body.Status != core.CataloguesUnhealthy &&
		body.Components["queue"] != ComponentDown && body.Components["store"] != ComponentDown
	status := http.StatusOK
	if !body.Ready {
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", retryAfter(0))
	}
	h.writeJSON(w, r, status, contentTypeJSON, body)
	return nil
}
