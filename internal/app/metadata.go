package app

import (
	"context"
	"time"

	"tutti/ingest"
	"tutti/internal/auth"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/metadata"
	"tutti/internal/upstream/song"
	"tutti/schemas"
)

// openMetadata creates the services for analysis types, the built-in metadata repository and authentication.
func (a *App) openMetadata(ctx context.Context) error {
	var err error
	s := a.cfg.Schemas
	a.analysisTypes, err = schemas.New(a.store, schemas.Config{
		AllowOlder: !s.EnforceLatest, DefaultOptions: s.DefaultOptions, AllowedHosts: s.ExternalValidations.AllowedHosts,
		ValidationTime: s.ValidationTimeout, Timeout: s.ExternalValidations.Timeout, Shared: a.store.Postgres(), UserAgent: "tutti/" + a.opts.Version,
		Logger: a.log.With("component", "schemas"), Metrics: a.metrics.schemas,
	})
	if err != nil {
		return err
	}
	a.cleanup.push("external validations", func(context.Context) error { a.analysisTypes.Close(); return nil })
	cfg := metadata.Config{
		SystemScope: a.cfg.Auth.SystemScope, Logger: a.log.With("component", "metadata"), Metrics: a.metrics.metadata,
	}
	cfg.KeepVersion = !s.EnforceLatest
	rc := a.localRepository()
	cfg.DisableOutbox = rc == nil
	if rc != nil {
		cfg.MaxBytes = a.cfg.Index.MaxRecordBytes
		for _, state := range rc.Own().(*song.Settings).States {
			cfg.IndexedStates = append(cfg.IndexedStates, core.AnalysisState(state))
		}
	}
	if a.metadata, err = metadata.New(a.store, a.analysisTypes, cfg); err != nil {
		return err
	}
	return a.openAuth(ctx)
}

// localRepository returns the configuration of the repository of type local, nil when there is none.
func (a *App) localRepository() *config.Repository {
	for i := range a.cfg.Repositories {
		if a.cfg.Repositories[i].Type == core.TypeLocal {
			return &a.cfg.Repositories[i]
		}
	}
	return nil
}

// openAuth creates the service for API keys and, with auth.mode token, the authenticator.
func (a *App) openAuth(ctx context.Context) error {
	c := a.cfg.Auth
	var err error
	if a.keys, err = auth.NewKeys(a.store, auth.KeysConfig{Scopes: scopes(c)}); err != nil || c.Mode == config.ModeNone {
		return err
	}
	var tokens *auth.JWT
	if c.JWT.Enabled() {
		tokens, err = auth.NewJWT(ctx, auth.JWTConfig{
			JWKSURL: c.JWT.JWKSURL, PublicKey: c.JWT.PublicKey, Issuer: c.JWT.Issuer, Audience: c.JWT.Audience,
			Logger: a.log.With("component", "auth"),
		})
		if err != nil {
			return err
		}
		a.cleanup.push("keys of tokens", func(context.Context) error { tokens.Close(); return nil })
	}
	a.authenticator = auth.New(a.keys, tokens)
	return nil
}

// startRelay starts publishing the built-in repository's changes to the queue.
func (a *App) startRelay(context.Context) error {
	rc := a.localRepository()
	if rc == nil {
		return nil
	}
	relay, err := ingest.NewRelay(a.ingest, a.metadata, rc.Code, ingest.RelayConfig{Logger: a.log.With("component", "outbox")})
	if err != nil {
		return err
	}
	relay.Start()
	a.relay = relay
	a.cleanup.push("outbox relay", func(ctx context.Context) error { return a.stopRelay(ctx, relay) })
	return nil
}

// stopRelay stops the relay. It leaves most of the stop timeout to the steps after it. Unsent events are sent after the next start.
func (a *App) stopRelay(ctx context.Context, relay *ingest.Relay) error {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/4)
		defer cancel()
	}
	err := relay.Stop(ctx)
	if core.CodeOf(err) == core.CodeUnavailable {
		a.log.Info("changes in flight are published after the next start")
		return nil
	}
	return err
}
