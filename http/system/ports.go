package system

import (
	"context"
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tutti/internal/core"
)

// Ports is what a Surface needs; Readiness, Keys, Backups and Catalogues are required.
type Ports struct {
	Readiness  Readiness
	Keys       Keys
	Backups    Backups
	Catalogues core.Catalogues
	// Service describes the server in GET /service-info.
	Service Service
	// Gatherer provides the metrics of GET /metrics. Default: an empty registry.
	Gatherer prometheus.Gatherer
	// Examples returns pairs of strings: a value in the examples of the OpenAPI document, and its replacement, such as the id of
	// an existing record. It must be safe for concurrent use. Default: no replacements.
	Examples func() []string
}

// Service describes a server in the terms of GA4GH's Service Info 1.0.0. Empty members of those that it requires are made from URL or, without
// one, from the URL of the request; others that are empty are absent.
type Service struct {
	ID, Name, Description, Environment, ContactURL, OrganizationName, OrganizationURL, Version string
	// URL is the URL at which users reach the server, with its base path.
	URL string
}

// Readiness reports whether the process can do its work.
type Readiness interface {
	// Health probes every component. It is bounded by ctx and never fails: a component that does not answer is down.
	Health(ctx context.Context) Health
}

// Keys manages API keys.
type Keys interface {
	// Create creates a key and returns it with its secret, which clients send and which is not stored. A zero expires means
	// never. CodeInvalid for an invalid name, scope or time.
	Create(ctx context.Context, name string, scopes []string, expires time.Time) (core.APIKey, string, error)
	// List returns all keys, newest first.
	List(ctx context.Context) ([]core.APIKey, error)
	// Revoke revokes a key; CodeNotFound when there is none. Revoking a revoked key is not an error.
	Revoke(ctx context.Context, id string) (core.APIKey, error)
}

// Backups writes backups.
type Backups interface {
	// Backup writes a backup of the embedded parts to w, as a tar archive. Errors: CodeConflict while another one is written,
	// CodeUnsupported when nothing is embedded, CodeUnavailable when a part cannot be read.
	Backup(ctx context.Context, w io.Writer) error
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
	// Components are the states by component: queue, index, store. /ready returns 503 while the queue or the store is down.
	Components map[string]ComponentState
	// Reasons explains why components are not up, in sentences that may be shown to clients.
	Reasons []string
	// Paused lists the repositories whose consumers are paused.
	Paused []core.Pause
	// Stopping is true once the process stops: /ready returns 503.
	Stopping bool
}
