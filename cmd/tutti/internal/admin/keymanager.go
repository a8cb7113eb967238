package admin

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/client"
	"tutti/cmd/tutti/internal/command"
	"tutti/internal/app/storage"
	"tutti/internal/config"
	"tutti/internal/core"
)

// keyManager manages API keys, at a server or in a store.
type keyManager interface {
	CreateKey(ctx context.Context, name string, scopes []string, expires time.Time) (client.APIKey, error)
	Keys(ctx context.Context) (client.KeyList, error)
	RevokeKey(ctx context.Context, id string) (client.APIKey, error)
}

var (
	_ keyManager = (*client.Client)(nil)
	_ keyManager = storedKeys{}
)

// manage calls do with the server's keys or, with --config, the store's.
func (k *keyFlags) manage(cmd *cobra.Command, do func(context.Context, keyManager) error) error {
	ctx := cmd.Context()
	if !cmd.Flags().Changed("config") {
		c, err := k.Client(cmd)
		if err != nil {
			return err
		}
		return do(ctx, c)
	}
	for _, flag := range []string{"server", "token"} {
		if cmd.Flags().Changed(flag) {
			return command.Usage(cmd, "--config uses the store directly and cannot be combined with --"+flag)
		}
	}
	if err := command.CheckOutput(k.Output); err != nil {
		return err
	}
	cfg, err := config.Load(k.file, os.Environ())
	if err != nil {
		return err
	}
	store, err := storage.OpenKeys(ctx, cfg)
	if err != nil {
		return err
	}
	err = do(ctx, storedKeys{store})
	return errors.Join(err, store.Close(context.WithoutCancel(ctx)))
}

// storedKeys manages the keys in a store, and returns them like a server.
type storedKeys struct{ store *storage.KeyStore }

// CreateKey creates a key.
func (s storedKeys) CreateKey(ctx context.Context, name string, scopes []string, expires time.Time) (client.APIKey, error) {
	key, text, err := s.store.Create(ctx, name, scopes, expires)
	if err != nil {
		return client.APIKey{}, err
	}
	made := toClientKey(key)
	made.Key = text
	return made, nil
}

// Keys returns all keys, the newest first.
func (s storedKeys) Keys(ctx context.Context) (client.KeyList, error) {
	keys, err := s.store.List(ctx)
	if err != nil {
		return client.KeyList{}, err
	}
	list := client.KeyList{Keys: make([]client.APIKey, len(keys))}
	for i, key := range keys {
		list.Keys[i] = toClientKey(key)
	}
	return list, nil
}

// RevokeKey revokes a key.
func (s storedKeys) RevokeKey(ctx context.Context, id string) (client.APIKey, error) {
	key, err := s.store.Revoke(ctx, id)
	if err != nil {
		return client.APIKey{}, err
	}
	return toClientKey(key), nil
}

// toClientKey converts a key to the form that a server returns.
func toClientKey(key core.APIKey) client.APIKey {
	return client.APIKey{
		ID: key.ID, Name: key.Name, Scopes: key.Scopes, CreatedAt: key.CreatedAt, ExpiresAt: key.ExpiresAt, RevokedAt: key.RevokedAt,
	}
}
