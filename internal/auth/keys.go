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

	"tutti/internal/core"
)

const (
	// maxNameRunes is the longest name of a key, in characters.
	maxNameRunes = 100
	// maxScopes is how many scopes a key can have.
	maxScopes = 1000
	// maxYear is the last one that a time in JSON can have.
	maxYear = 9999
	// cachedKeys is how many keys are kept.
	cachedKeys = 1024
	// DefaultCacheFor is how long a key is taken for unchanged unless KeysConfig says otherwise.
	DefaultCacheFor = time.Second
	// maxCacheFor is the longest time for which a key that another process has revoked may still be taken here.
	maxCacheFor = 10 * time.Second
)

// KeyStore keeps API keys.
type KeyStore interface {
	// AddKey stores a new key; CodeConflict when the id is taken.
	AddKey(ctx context.Context, key core.APIKey) error
	// Key returns one key, CodeNotFound when there is none.
	Key(ctx context.Context, id string) (core.APIKey, error)
	// Keys returns all keys, the last made first.
	Keys(ctx context.Context) ([]core.APIKey, error)
	// RevokeKey notes that a key ended at a time, unless it had before, and returns it as it is then. CodeNotFound when
	// there is none.
	RevokeKey(ctx context.Context, id string, at time.Time) (core.APIKey, error)
}

// KeysConfig adjusts Keys. The zero value is the default.
type KeysConfig struct {
	// Scopes says how scopes are called.
	Scopes Scopes
	// CacheFor is how long a key is taken for unchanged, so that not every request costs a call of the store; for so long
	// a key that another process has revoked may still be taken. At most 10 s. Default DefaultCacheFor.
	CacheFor time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (c KeysConfig) validate() error {
	if c.CacheFor < 0 || c.CacheFor > maxCacheFor {
		return core.NewError(core.CodeInvalid, "keys can be cached for 0 to 10 seconds")
	}
	return c.Scopes.withDefaults().validate()
}

func (c KeysConfig) withDefaults() KeysConfig {
	c.Scopes = c.Scopes.withDefaults()
	if c.CacheFor == 0 {
		c.CacheFor = DefaultCacheFor
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Keys makes, lists, revokes and checks API keys. Of a key only the SHA-256 of its secret is stored. Its methods may be
// called from several goroutines at once.
type Keys struct {
	store KeyStore
	cfg   KeysConfig
	cache *keyCache
}

// NewKeys makes Keys. CodeInvalid for a bad Config.
func NewKeys(store KeyStore, cfg KeysConfig) (*Keys, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Keys{store: store, cfg: cfg.withDefaults(), cache: newKeyCache(cachedKeys)}, nil
}

// Create makes a key and returns it with the whole text that its holder shows, which is kept nowhere. expires is zero for
// never. CodeInvalid for a name that is empty, over 100 characters or not printable, for no scopes or one that grants
// nothing, and for a time that has passed or lies, in UTC, after the year 9999.
func (k *Keys) Create(ctx context.Context, name string, scopes []string, expires time.Time) (core.APIKey, string, error) {
	if err := checkName(name); err != nil {
		return core.APIKey{}, "", err
	}
	scopes, err := k.checkScopes(scopes)
	if err != nil {
		return core.APIKey{}, "", err
	}
	now := k.cfg.Now().UTC().Truncate(time.Microsecond) // as it is kept
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

// checkExpiry refuses a time that has passed, and one that RFC 3339 cannot write.
func checkExpiry(expires, now time.Time) error {
	const hint = "give a time to come, or none for a key that does not expire"
	switch {
	case expires.IsZero():
		return nil
	case !expires.After(now):
		return &core.Error{Code: core.CodeInvalid, Message: "the key would have expired already", Hint: hint}
	case expires.UTC().Year() > maxYear:
		return &core.Error{Code: core.CodeInvalid, Message: fmt.Sprintf("the key would expire after the year %d", maxYear), Hint: hint}
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
		fault = fmt.Sprintf("has over %d characters", maxNameRunes)
	case strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }):
		fault = "holds a character that cannot be printed"
	default:
		return nil
	}
	return &core.Error{Code: core.CodeInvalid, Message: "the name " + fault, Hint: "say in a few words what the key is for"}
}

// checkScopes returns scopes without repetitions.
func (k *Keys) checkScopes(scopes []string) ([]string, error) {
	if len(scopes) == 0 {
		return nil, &core.Error{
			Code: core.CodeInvalid, Message: "a key needs a scope",
			Hint: fmt.Sprintf("such as %s or %s", k.cfg.Scopes.SystemScope(), k.cfg.Scopes.WriteScope("<organization>")),
		}
	}
	if len(scopes) > maxScopes {
		return nil, core.NewError(core.CodeInvalid, fmt.Sprintf("a key can have %d scopes at most", maxScopes))
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

// List returns all keys, the last made first.
func (k *Keys) List(ctx context.Context) ([]core.APIKey, error) {
	keys, err := k.store.Keys(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing API keys: %w", err)
	}
	return keys, nil
}

// Revoke ends a key: this process takes it no more when Revoke returns, others after KeysConfig.CacheFor. CodeNotFound when
// there is none. A key that was revoked before stays so.
func (k *Keys) Revoke(ctx context.Context, id string) (core.APIKey, error) {
	key, err := k.store.RevokeKey(ctx, id, k.cfg.Now().UTC())
	// Also after an error: it may have been stored all the same.
	k.cache.drop(id)
	if err != nil {
		return core.APIKey{}, fmt.Errorf("revoking an API key: %w", err)
	}
	return key, nil
}

// Authenticate tells who holds an API key. CodeUnauthenticated for one that is unknown, revoked or expired,
// CodeUnavailable when the store does not answer.
func (k *Keys) Authenticate(ctx context.Context, token string) (core.Principal, error) {
	text, ok := parseKeyText(token)
	if !ok {
		return core.Principal{}, errUnknownKey()
	}
	entry, err := k.lookUp(ctx, text.id)
	known := err == nil
	if !known {
		if core.CodeOf(err) != core.CodeNotFound {
			return core.Principal{}, core.WrapError(core.CodeUnavailable, "API keys cannot be checked now", err)
		}
		// The work is the same for an id that nobody has.
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

// lookUp returns the key of an id from the cache, else from the store.
func (k *Keys) lookUp(ctx context.Context, id string) (cachedKey, error) {
	now := k.cfg.Now()
	entry, generation, ok := k.cache.get(id, now)
	if ok {
		return entry, nil
	}
	key, err := k.store.Key(ctx, id)
	if err != nil {
		return cachedKey{}, fmt.Errorf("reading an API key: %w", err)
	}
	entry = cachedKey{key: key, principal: k.cfg.Scopes.grant("key:"+key.ID, key.Name, key.Scopes), until: now.Add(k.cfg.CacheFor)}
	if key.RevokedAt.IsZero() {
		k.cache.put(id, entry, generation, now)
	}
	return entry, nil
}
