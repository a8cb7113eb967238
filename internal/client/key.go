package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// APIKey is an API key as returned by the server (CONTRACT section 6).
type APIKey struct {
	// ID is public.
	ID     string   `json:"id"`
	Name   string   `json:"name"`
	Scopes []string `json:"scopes"`
	// CreatedAt, ExpiresAt and RevokedAt are in UTC; the last two are zero for a key that does not expire or is not revoked.
	CreatedAt time.Time `json:"createdAt"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	RevokedAt time.Time `json:"revokedAt,omitzero"`
	// Key is the secret text of the key, returned only by CreateKey.
	Key string `json:"key,omitempty"`
	// Raw is the key as received; nil in a list.
	Raw json.RawMessage `json:"-"`
}

// KeyList holds all API keys, newest first.
type KeyList struct {
	Keys []APIKey `json:"keys"`
	// Raw is the list as received.
	Raw json.RawMessage `json:"-"`
}

const pathKeys = "keys"

// Keys lists the API keys, including expired and revoked ones.
func (c *Client) Keys(ctx context.Context) (KeyList, error) {
	var list KeyList
	var err error
	list.Raw, err = c.do(ctx, call{method: http.MethodGet, path: "/" + pathKeys}, &list)
	return list, err
}

// CreateKey creates an API key. A zero expires means never. CodeInvalid for a bad name, scope or time.
func (c *Client) CreateKey(ctx context.Context, name string, scopes []string, expires time.Time) (APIKey, error) {
	body, err := json.Marshal(struct {
		Name      string    `json:"name"`
		Scopes    []string  `json:"scopes"`
		ExpiresAt time.Time `json:"expiresAt,omitzero"`
	}{name, scopes, expires.UTC()})
	if err != nil {
		return APIKey{}, fmt.Errorf("encoding the key: %w", err)
	}
	var key APIKey
	key.Raw, err = c.do(ctx, call{method: http.MethodPost, path: "/" + pathKeys, body: body}, &key)
	return key, err
}

// RevokeKey revokes an API key and returns it; CodeNotFound when it does not exist.
func (c *Client) RevokeKey(ctx context.Context, id string) (APIKey, error) {
	path, err := pathOf(pathKeys, id)
	if err != nil {
		return APIKey{}, err
	}
	var key APIKey
	key.Raw, err = c.do(ctx, call{method: http.MethodDelete, path: path}, &key)
	return key, err
}
