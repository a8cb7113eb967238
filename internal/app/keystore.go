package app

import (
	"context"
	"errors"
	"log/slog"

	"tutti/internal/auth"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/store"
)

// scopes returns the format of scopes.
func scopes(c config.Auth) auth.Scopes {
	return auth.Scopes{
		System: c.SystemScope, OrganizationPrefix: c.OrganizationPrefix, WriteSuffix: c.WriteSuffix, ReadSuffix: c.ReadSuffix,
	}
}

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
	keys, err := auth.NewKeys(s, auth.KeysConfig{Scopes: scopes(cfg.Auth)})
	if err != nil {
		return nil, errors.Join(err, s.Close(ctx), release())
	}
	return &KeyStore{Keys: keys, store: s, release: release}, nil
}

// Close closes the store.
func (k *KeyStore) Close(ctx context.Context) error {
	return errors.Join(k.store.Close(ctx), k.release())
}
