package app

import (
	"context"

	"tutti/internal/app/settings"
	"tutti/internal/auth"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/metadata"
	"tutti/internal/upstream/score"
	"tutti/internal/upstream/song"
	"tutti/schemas"
)

// builtIn is the built-in metadata repository and authentication, whose data is in the store.
type builtIn struct {
	*base
	analysisTypes *schemas.Service
	metadata      *metadata.Repository
	keys          *auth.Keys
	authenticator *auth.Authenticator // nil with auth.mode none
}

// openMetadata creates the services for analysis types, the built-in metadata repository and authentication.
func (b *builtIn) openMetadata(ctx context.Context) error {
	var err error
	s := b.cfg.Schemas
	files := s.ExternalValidations.Files()
	files.Failures = &b.connections
	b.analysisTypes, err = schemas.New(b.data.Store, schemas.Config{
		AllowOlder: !s.EnforceLatest, DefaultOptions: s.DefaultOptions, AllowedHosts: s.ExternalValidations.AllowedHosts,
		TLS:            files,
		ValidationTime: s.ValidationTimeout, Timeout: s.ExternalValidations.Timeout, Shared: b.data.Store.Postgres(), UserAgent: "tutti/" + b.opts.Version,
		Logger: b.log.With("component", "schemas"), Metrics: b.metrics.schemas,
	})
	if err != nil {
		return err
	}
	b.cleanup.Push("external validations", func(context.Context) error { b.analysisTypes.Close(); return nil })
	if s.Seed == config.SeedSong {
		if err := b.analysisTypes.Seed(ctx); err != nil {
			return err
		}
	}
	cfg := metadata.Config{
		SystemScope: b.cfg.Auth.SystemScope, Logger: b.log.With("component", "metadata"), Metrics: b.metrics.metadata,
	}
	cfg.KeepVersion = !s.EnforceLatest
	rc := b.localRepository()
	cfg.DisableOutbox = rc == nil
	if rc != nil {
		cfg.MaxBytes = b.cfg.Index.MaxRecordBytes
		if cfg.CheckDocument, err = b.documentCheck(*rc); err != nil {
			return err
		}
		for _, state := range rc.Own().(*song.Settings).States {
			cfg.IndexedStates = append(cfg.IndexedStates, datamodel.AnalysisState(state))
		}
	}
	if err := b.openScore(&cfg); err != nil {
		return err
	}
	if b.metadata, err = metadata.New(b.data.Store, b.analysisTypes, cfg); err != nil {
		return err
	}
	if err := b.metadata.BackfillEntities(ctx); err != nil {
		return err
	}
	return b.openAuth(ctx)
}

// openScore sets the storage that is queried for files before a publication, if one is configured.
func (b *builtIn) openScore(cfg *metadata.Config) error {
	c := b.cfg.Schemas.Storage
	if c.URL == "" {
		return nil
	}
	to := settings.Score(c, b.opts.Version)
	to.TLS.Failures = &b.connections
	client, err := score.New(to)
	if err != nil {
		return err
	}
	b.cleanup.Push("connections to Score", func(context.Context) error { client.Close(); return nil })
	cfg.Storage, cfg.StorageTimeout = client, c.Timeout
	return nil
}

// localRepository returns the configuration of the repository of type local, nil when there is none.
func (b *builtIn) localRepository() *config.Repository {
	for i := range b.cfg.Repositories {
		if b.cfg.Repositories[i].Type == core.TypeLocal {
			return &b.cfg.Repositories[i]
		}
	}
	return nil
}

// openAuth creates the service for API keys and, with auth.mode token, the authenticator.
func (b *builtIn) openAuth(ctx context.Context) error {
	c := b.cfg.Auth
	var err error
	if b.keys, err = auth.NewKeys(b.data.Store, auth.KeysConfig{Scopes: settings.Scopes(c)}); err != nil || c.Mode == config.ModeNone {
		return err
	}
	var tokens *auth.JWT
	if c.JWT.Enabled() {
		cfg := settings.JWT(c)
		cfg.TLS.Failures, cfg.UMA.TLS.Failures = &b.connections, &b.connections
		cfg.Logger = b.log.With("component", "auth")
		if tokens, err = auth.NewJWT(ctx, cfg); err != nil {
			return err
		}
		b.cleanup.Push("keys of tokens", func(context.Context) error { tokens.Close(); return nil })
	}
	var introspection *auth.Introspection
	if c.Introspection.URL != "" {
		cfg := settings.Introspection(c)
		cfg.TLS.Failures = &b.connections
		cfg.Logger = b.log.With("component", "auth")
		if introspection, err = auth.NewIntrospection(cfg); err != nil {
			return err
		}
		b.cleanup.Push("checks of tokens", func(context.Context) error { introspection.Close(); return nil })
	}
	b.authenticator = auth.New(b.keys, tokens, introspection)
	return nil
}
