package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"tutti/internal/app"
	"tutti/internal/client"
	"tutti/internal/config"
	"tutti/internal/core"
)

// keyManager is where keys are managed.
type keyManager interface {
	CreateKey(ctx context.Context, name string, scopes []string, expires time.Time) (client.APIKey, error)
	Keys(ctx context.Context) (client.KeyList, error)
	RevokeKey(ctx context.Context, id string) (client.APIKey, error)
}

var (
	_ keyManager = (*client.Client)(nil)
	_ keyManager = storedKeys{}
)

// manage calls do with what the flags choose.
func (k *keyFlags) manage(cmd *cobra.Command, do func(context.Context, keyManager) error) error {
	ctx := cmd.Context()
	if !cmd.Flags().Changed("config") {
		c, err := k.client()
		if err != nil {
			return err
		}
		return do(ctx, c)
	}
	for _, flag := range []string{"server", "token"} {
		if cmd.Flags().Changed(flag) {
			return usage(cmd, "--config works on the store itself, and --"+flag+" is for a server: give one of them")
		}
	}
	if err := checkOutput(k.output); err != nil {
		return err
	}
	cfg, err := config.Load(k.file, os.Environ())
	if err != nil {
		return err
	}
	store, err := app.OpenKeys(ctx, cfg)
	if err != nil {
		return err
	}
	err = do(ctx, storedKeys{store})
	return errors.Join(err, store.Close(context.WithoutCancel(ctx)))
}

// storedKeys manages the keys in a store, and gives them as a server would.
type storedKeys struct{ store *app.KeyStore }

// CreateKey makes a key.
func (s storedKeys) CreateKey(ctx context.Context, name string, scopes []string, expires time.Time) (client.APIKey, error) {
	key, text, err := s.store.Create(ctx, name, scopes, expires)
	if err != nil {
		return client.APIKey{}, err
	}
	made := shownKey(key)
	made.Key = text
	return made, nil
}

// Keys returns all keys, the last made first.
func (s storedKeys) Keys(ctx context.Context) (client.KeyList, error) {
	keys, err := s.store.List(ctx)
	if err != nil {
		return client.KeyList{}, err
	}
	list := client.KeyList{Keys: make([]client.APIKey, len(keys))}
	for i, key := range keys {
		list.Keys[i] = shownKey(key)
	}
	return list, nil
}

// RevokeKey ends a key.
func (s storedKeys) RevokeKey(ctx context.Context, id string) (client.APIKey, error) {
	key, err := s.store.Revoke(ctx, id)
	if err != nil {
		return client.APIKey{}, err
	}
	return shownKey(key), nil
}

// shownKey returns a key as a server shows it.
func shownKey(key core.APIKey) client.APIKey {
	return client.APIKey{
		ID: key.ID, Name: key.Name, Scopes: key.Scopes, CreatedAt: key.CreatedAt, ExpiresAt: key.ExpiresAt, RevokedAt: key.RevokedAt,
	}
}
