package app

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"tutti/internal/auth"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/queue/embedded"
	"tutti/internal/store"
)

// openDatabase opens the store that a configuration names. The folder of the embedded one is locked: it belongs to one
// process. release returns it back once the store is closed.
func openDatabase(
	ctx context.Context, cfg config.Config, log *slog.Logger, metrics *store.Metrics,
) (s *store.Store, release func() error, err error) {
	release = func() error { return nil }
	c := store.Config{URL: cfg.Store.URL.Reveal(), Logger: log.With("component", "store"), Metrics: metrics}
	if c.URL == "" {
		c.Dir = filepath.Join(cfg.DataDir, "store")
		lock, err := embedded.LockDir(c.Dir)
		if err != nil {
			return nil, nil, err
		}
		release = lock.Unlock
	}
	if s, err = store.Open(ctx, c); err != nil {
		return nil, nil, errors.Join(err, release())
	}
	return s, release, nil
}

func (a *App) openStore(ctx context.Context) error {
	s, release, err := openDatabase(ctx, a.cfg, a.log, a.metrics.store)
	if err != nil {
		return err
	}
	a.store = s
	a.cleanup.push("store", func(ctx context.Context) error { return errors.Join(s.Close(ctx), release()) })
	return nil
}

// scopes returns how scopes are written.
func scopes(c config.Auth) auth.Scopes {
	return auth.Scopes{
		System: c.SystemScope, OrganizationPrefix: c.OrganizationPrefix, WriteSuffix: c.WriteSuffix, ReadSuffix: c.ReadSuffix,
	}
}

// KeyStore manages the API keys of a tutti that does not run.
type KeyStore struct {
	keys    *auth.Keys
	store   *store.Store
	release func() error
}

// OpenKeys opens the store of a configuration for its API keys. CodeConflict when a tutti runs on its data folder.
func OpenKeys(ctx context.Context, cfg config.Config) (*KeyStore, error) {
	s, release, err := openDatabase(ctx, cfg, slog.New(slog.DiscardHandler), nil)
	if core.CodeOf(err) == core.CodeConflict {
		return nil, &core.Error{
			Code: core.CodeConflict, Message: core.MessageOf(err), Hint: "ask the running one: use --server instead of --config",
		}
	}
	if err != nil {
		return nil, err
	}
	keys, err := auth.NewKeys(s, auth.KeysConfig{Scopes: scopes(cfg.Auth)})
	if err != nil {
		return nil, errors.Join(err, s.Close(ctx), release())
	}
	return &KeyStore{keys: keys, store: s, release: release}, nil
}

// Create makes a key and returns it with the text that its holder shows, which is not kept.
func (k *KeyStore) Create(ctx context.Context, name string, scopes []string, expires time.Time) (core.APIKey, string, error) {
	return k.keys.Create(ctx, name, scopes, expires)
}

// List returns all keys, the last made first.
func (k *KeyStore) List(ctx context.Context) ([]core.APIKey, error) { return k.keys.List(ctx) }

// Revoke ends a key.
func (k *KeyStore) Revoke(ctx context.Context, id string) (core.APIKey, error) {
	return k.keys.Revoke(ctx, id)
}

// Close closes the store.
func (k *KeyStore) Close(ctx context.Context) error {
	return errors.Join(k.store.Close(ctx), k.release())
}
