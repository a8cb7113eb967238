package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tutti/internal/base/cache"
	"tutti/internal/core"
)

const (
	// maxNameRunes bounds the name of a key, in characters.
	maxNameRunes = 100
	// maxScopes bounds the scopes of a key.
	maxScopes = 1000
	// maxYear is the last year that a time in JSON can have.
	maxYear = 9999
	// maxCachedKeys is the size of the key cache.
	maxCachedKeys = 1024
	// CacheFor is how long a key is cached, so that not every request reads the store; a key that another process revoked may be
	// accepted that long.
	CacheFor = time.Second
)

// KeyStore stores API keys.
type KeyStore interface {
	// AddKey stores a new key; CodeConflict when the id is taken.
	AddKey(ctx context.Context, key core.APIKey) error
	// Key returns one key, CodeNotFound when it does not exist.
	Key(ctx context.Context, id string) (core.APIKey, error)
	// Keys returns all keys, newest first.
	Keys(ctx context.Context) ([]core.APIKey, error)
	// RevokeKey revokes a key, unless it was revoked before, and returns it. CodeNotFound when it does not exist.
	RevokeKey(ctx context.Context, id string, at time.Time) (core.APIKey, error)
}

// KeysConfig configures Keys. The zero value is the default.
type KeysConfig struct {
	// Scopes defines the names of scopes.
	Scopes Scopes
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (c KeysConfig) withDefaults() KeysConfig {
	c.Scopes = c.Scopes.withDefaults()
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Keys creates, lists, revokes and authenticates API keys. Only the SHA-256 of a key's secret is stored. It is safe for concurrent
// use.
type Keys struct {
	store KeyStore
	cfg   KeysConfig
	// cache has only existing keys: neither unknown ids, which anyone could fill it with, nor errors.
	cache *cache.LRU[string, cachedKey]
}

// NewKeys returns Keys. CodeInvalid for a bad Config.
func NewKeys(store KeyStore, cfg KeysConfig) (*Keys, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Scopes.validate(); err != nil {
		return nil, err
	}
	return &Keys{store: store, cfg: cfg, cache: cache.NewLRU[string, cachedKey](maxCachedKeys)}, nil
}

// Create creates a key and returns it with its complete text, which is not stored. A zero expires means never. CodeInvalid for a name
// that is empty, over 100 characters or not printable, for no scopes or one that grants nothing, and for a time in the past or, in
// UTC, after the year 9999.
func (k *Keys) Create(ctx context.Context, name string, scopes []string, expires time.Time) (core.APIKey, string, error) {
	if err := checkName(name); err != nil {
		return core.APIKey{}, "", err
	}
	scopes, err := k.checkScopes(scopes)
	if err != nil {
		return core.APIKey{}, "", err
	}
	now := k.cfg.Now().UTC().Truncate(time.Microsecond) // as it is stored
	if err := checkExpiry(expires, now); err != nil {
		return core.APIKey{}, "", err
	}
	text := newKeyText()
	key := core.APIKey{ID: text.id, Name: name, Scopes: scopes, CreatedAt: now, Hash: text.hash()}
	if !expires.IsZero() {
		key.ExpiresAt = expires.UTC().Truncate(time.Microsecond)
	}
	if err := k.store.AddKey(ctx, key); err != nil {
		return core.APIKey{}, "", fmt.Errorf("storing an API key: %w", err)
	}
	return key, text.String(), nil
}

// checkExpiry returns CodeInvalid for a time in the past, and for one that RFC 3339 cannot represent.
func checkExpiry(expires, now time.Time) error {
	const hint = "set a time in the future, or none for a key that does not expire"
	switch {
	case expires.IsZero():
		return nil
	case !expires.After(now):
		return &core.Error{Code: core.CodeInvalid, Message: "the expiry of the key is in the past", Hint: hint}
	case expires.UTC().Year() > maxYear:
		return &core.Error{Code: core.CodeInvalid, Message: fmt.Sprintf("the expiry of the key is after the year %d", maxYear), Hint: hint}
	default:
		return nil
	}
}

func checkName(name string) error {
	fault := ""
	switch {
	case strings.TrimSpace(name) == "":
		fault = "is empty"
	case !utf8.ValidString(name):
		fault = "is not valid UTF-8"
	case utf8.RuneCountInString(name) > maxNameRunes:
		fault = fmt.Sprintf("has more than %d characters", maxNameRunes)
	case strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }):
		fault = "contains a character that is not printable"
	default:
		return nil
	}
	return &core.Error{Code: core.CodeInvalid, Message: "the name " + fault, Hint: "describe in a few words what the key is for"}
}

// checkScopes returns valid scopes without duplicates.
func (k *Keys) checkScopes(scopes []string) ([]string, error) {
	if len(scopes) == 0 {
		return nil, &core.Error{
			Code: core.CodeInvalid, Message: "a key needs at least one scope",
			Hint: fmt.Sprintf("such as %s or %s", k.cfg.Scopes.SystemScope(), k.cfg.Scopes.WriteScope("<organization>")),
		}
	}
	if len(scopes) > maxScopes {
		return nil, core.NewError(core.CodeInvalid, fmt.Sprintf("a key can have at most %d scopes", maxScopes))
	}
	var kept []string
	for _, scope := range scopes {
		if err := k.cfg.Scopes.check(scope); err != nil {
			return nil, err
		}
		if !slices.Contains(kept, scope) {
			kept = append(kept, scope)
		}
	}
	return kept, nil
}

// List returns all keys, newest first.
func (k *Keys) List(ctx context.Context) ([]core.APIKey, error) {
	keys, err := k.store.Keys(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing API keys: %w", err)
	}
	return keys, nil
}

// Revoke revokes a key: this process rejects it when Revoke returns, others after CacheFor. CodeNotFound when it does not
// exist. An earlier revocation is kept.
func (k *Keys) Revoke(ctx context.Context, id string) (core.APIKey, error) {
	key, err := k.store.RevokeKey(ctx, id, k.cfg.Now().UTC())
	// Also after an error: the revocation may have been stored.
	k.cache.Invalidate(id)
	if err != nil {
		return core.APIKey{}, fmt.Errorf("revoking an API key: %w", err)
	}
	return key, nil
}

// Authenticate returns the Principal of an API key. CodeUnauthenticated for an unknown, revoked or expired key, CodeUnavailable when
// the store does not answer.
func (k *Keys) Authenticate(ctx context.Context, token string) (core.Principal, error) {
	text, ok := parseKeyText(token)
	if !ok {
		return core.Principal{}, errUnknownKey()
	}
	entry, err := k.lookUp(ctx, text.id)
	known := err == nil
	if !known {
		if core.CodeOf(err) != core.CodeNotFound {
			return core.Principal{}, core.WrapError(core.CodeUnavailable, "API keys cannot be verified now", err)
		}
		// Unknown ids take the same time.
		entry.key.Hash = make([]byte, sha256.Size)
	}
	if subtle.ConstantTimeCompare(text.hash(), entry.key.Hash) != 1 || !known {
		return core.Principal{}, errUnknownKey()
	}
	switch {
	case !entry.key.RevokedAt.IsZero():
		return core.Principal{}, unauthenticated("the API key was revoked", "ask for a new one")
	case !entry.key.ExpiresAt.IsZero() && !k.cfg.Now().Before(entry.key.ExpiresAt):
		return core.Principal{}, unauthenticated("the API key has expired", "ask for a new one")
	}
	return entry.principal, nil
}

// cachedKey is a key that was not revoked when it was read, with its Principal.
type cachedKey struct {
	key       core.APIKey
	principal core.Principal
	until     time.Time
}

// lookUp returns the key with an id from the cache or the store.
func (k *Keys) lookUp(ctx context.Context, id string) (cachedKey, error) {
	now := k.cfg.Now()
	if entry, ok := k.cache.Get(id); ok && now.Before(entry.until) {
		return entry, nil
	}
	generation := k.cache.Generation()
	key, err := k.store.Key(ctx, id)
	if err != nil {
		return cachedKey{}, fmt.Errorf("reading an API key: %w", err)
	}
	entry := cachedKey{key: key, principal: k.cfg.Scopes.grant("key:"+key.ID, key.Name, key.Scopes), until: now.Add(CacheFor)}
	if key.RevokedAt.IsZero() {
		k.cache.PutIn(generation, id, entry, 1)
	}
	return entry, nil
}
