package storage

import (
	"context"
	"errors"
	"log/slog"

	"tutti/internal/app/settings"
	"tutti/internal/auth"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/metadata"
	"tutti/internal/store"
)

// KeyStore manages the API keys in a store without a running server.
type KeyStore struct {
	*auth.Keys
	store   *store.Store
	release func() error
}

// OpenKeys opens the API keys in the store of a configuration. It returns CodeConflict if a tutti runs on the data folder.
func OpenKeys(ctx context.Context, cfg config.Config) (*KeyStore, error) {
	s, release, err := openDatabase(ctx, cfg, slog.New(slog.DiscardHandler), nil)
	if core.CodeOf(err) == core.CodeConflict {
		return nil, &core.Error{
			Code: core.CodeConflict, Message: core.MessageOf(err), Hint: "use --server instead of --config to call the running server",
		}
	}
	if err != nil {
		return nil, err
	}
	keys, err := auth.NewKeys(s, auth.KeysConfig{Scopes: settings.Scopes(cfg.Auth)})
	if err != nil {
		return nil, errors.Join(err, s.Close(ctx), release())
	}
	return &KeyStore{Keys: keys, store: s, release: release}, nil
}

// Close closes the store.
func (k *KeyStore) Close(ctx context.Context) error {
	return errors.Join(k.store.Close(ctx), k.release())
}

// MigrationTarget is the store of a configuration, to copy studies, analysis types and analyses into it without a running server.
type MigrationTarget struct {
	*metadata.Repository

	store   *store.Store
	release func() error
}

// OpenMigrationTarget opens the store of a configuration. It returns CodeConflict if a tutti runs on the data folder.
func OpenMigrationTarget(ctx context.Context, cfg config.Config, log *slog.Logger) (*MigrationTarget, error) {
	s, release, err := openDatabase(ctx, cfg, log, nil)
	if core.CodeOf(err) == core.CodeConflict {
		return nil, &core.Error{Code: core.CodeConflict, Message: core.MessageOf(err), Hint: "stop the server, migrate, and start it again"}
	}
	if err != nil {
		return nil, err
	}
	t := &MigrationTarget{store: s, release: release}
	t.Repository, err = metadata.New(s, nil, metadata.Config{
		SystemScope: cfg.Auth.SystemScope, MaxBytes: cfg.Index.MaxRecordBytes, DisableOutbox: true, Logger: log,
	})
	if err == nil {
		err = t.BackfillEntities(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, t.Close(ctx))
	}
	return t, nil
}

// Types returns the analysis types of the store.
func (t *MigrationTarget) Types() *store.Store { return t.store }

// Close closes the store.
func (t *MigrationTarget) Close(ctx context.Context) error {
	return errors.Join(t.store.Close(ctx), t.release())
}

// inUse replaces the hint of an error that a running tutti causes.
func inUse(err error, hint string) error {
	if core.CodeOf(err) != core.CodeConflict {
		return err
	}
	return &core.Error{Code: core.CodeConflict, Message: core.MessageOf(err), Hint: hint, Err: errors.Unwrap(err)}
}
