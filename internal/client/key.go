package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// APIKey is an API key as the server shows it (CONTRACT section 6).
type APIKey struct {
	// ID is public.
	ID     string   `json:"id"`
	Name   string   `json:"name"`
	Scopes []string `json:"scopes"`
	// CreatedAt, ExpiresAt and RevokedAt are in UTC; zero for a key that does not expire, that is not revoked.
	CreatedAt time.Time `json:"createdAt"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	RevokedAt time.Time `json:"revokedAt,omitzero"`
	// Key is the secret text that its holder shows. It is given once, by CreateKey.
	Key string `json:"key,omitempty"`
	// Raw is the key as it came; nil in a list.
	Raw json.RawMessage `json:"-"`
}

// KeyList are all API keys, the last made first.
type KeyList struct {
	Keys []APIKey `json:"keys"`
	// Raw is the list as it came.
	Raw json.RawMessage `json:"-"`
}

const pathKeys = "keys"

// Keys lists the API keys, those that expired or were revoked too.
func (c *Client) Keys(ctx context.Context) (KeyList, error) {
	var list KeyList
	var err error
	list.Raw, err = c.ask(ctx, call{method: http.MethodGet, path: "/" + pathKeys}, &list)
	return list, err
}

// CreateKey makes an API key. expires is zero for never. CodeInvalid for a bad name, scope or time.
func (c *Client) CreateKey(ctx context.Context, name string, scopes []string, expires time.Time) (APIKey, error) {
	body, err := json.Marshal(struct {
		Name      string    `json:"name"`
		Scopes    []string  `json:"scopes"`
		ExpiresAt time.Time `json:"expiresAt,omitzero"`
	}{name, scopes, expires.UTC()})
	if err != nil {
		return APIKey{}, fmt.Errorf("writing the key: %w", err)
	}
	var key APIKey
	key.Raw, err = c.ask(ctx, call{method: http.MethodPost, path: "/" + pathKeys, body: body}, &key)
	return key, err
}

// RevokeKey ends an API key and returns it as it is then; CodeNotFound when there is none.
func (c *Client) RevokeKey(ctx context.Context, id string) (APIKey, error) {
	path, err := pathOf(pathKeys, id)
	if err != nil {
		return APIKey{}, err
	}
	var key APIKey
	key.Raw, err = c.ask(ctx, call{method: http.MethodDelete, path: path}, &key)
	return key, err
}
