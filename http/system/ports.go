package system

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tutti/internal/core"
)

// Ports is what a Surface needs; Readiness, Keys and Catalogues are required.
type Ports struct {
	Readiness  Readiness
	Keys       Keys
	Catalogues CatalogueStates
	// Gatherer is what GET /metrics shows. Default: an empty registry.
	Gatherer prometheus.Gatherer
	// Examples returns pairs of a value in the examples of the OpenAPI document and the one that replaces it, such as the
	// id of a record that exists. It must be safe for concurrent use. Default: the examples stay as they are.
	Examples func() []string
}

// CatalogueStates says which catalogues there are.
type CatalogueStates interface {
	// Catalogues returns all catalogues as they are now, at once and never nil.
	Catalogues() *core.CatalogueSet
}

// Readiness reports whether the process can do its work.
type Readiness interface {
	// Health probes every component. It is bounded by ctx and never fails: a component that does not answer is down.
	Health(ctx context.Context) Health
}

// Keys manages API keys.
type Keys interface {
	// Create makes a key and returns it with the whole text that its holder shows, which is not kept. expires is zero for
	// never. CodeInvalid for a bad name, scope or time.
	Create(ctx context.Context, name string, scopes []string, expires time.Time) (core.APIKey, string, error)
	// List returns all keys, the last made first.
	List(ctx context.Context) ([]core.APIKey, error)
	// Revoke ends a key; CodeNotFound when there is none. A key that was revoked before stays so.
	Revoke(ctx context.Context, id string) (core.APIKey, error)
}

// ComponentState is the state of a part of the process.
type ComponentState string

// States of a component.
const (
	ComponentUp       ComponentState = "up"
	ComponentDegraded ComponentState = "degraded"
	ComponentDown     ComponentState = "down"
)

// Health is the part of GET /ready that does not concern the catalogues.
type Health struct {
	// Components are the parts by name: queue, index, store. A queue or store that is down makes /ready answer 503.
	Components map[string]ComponentState
	// Reasons says in words, which are safe to display, why components are not up.
	Reasons []string
	// Paused lists the repositories whose consumers are paused.
	Paused []core.Pause
}
