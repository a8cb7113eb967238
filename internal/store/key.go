package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"tutti/internal/core"
)

// keyColumns are the columns that scanKey reads.
const keyColumns = "id, name, scopes, hash, created_at, expires_at, revoked_at"

// AddKey stores a new API key. CodeConflict when its id is taken, CodeInvalid for a Hash that is not a SHA-256.
func (s *Store) AddKey(ctx context.Context, key core.APIKey) error {
	if len(key.Hash) != sha256.Size {
		return core.NewError(core.CodeInvalid, "the hash of an API key is not a SHA-256")
	}
	scopes, err := json.Marshal(key.Scopes)
	if err != nil {
		return core.WrapError(core.CodeInternal, "encoding the scopes of an API key", err)
	}
	for what, text := range map[string]string{"id of an API key": key.ID, "name of an API key": key.Name} {
		if err := checkText(what, text); err != nil {
			return err
		}
	}
	return s.Update(ctx, func(ctx context.Context, tx *Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO api_key ("+keyColumns+") VALUES ($1, $2, $3, $4, $5, $6, $7)",
			key.ID, key.Name, string(scopes), key.Hash, Micros(key.CreatedAt), Micros(key.ExpiresAt), Micros(key.RevokedAt))
		return WrapError("storing an API key", err)
	})
}

// Key returns an API key. CodeNotFound when there is none.
func (s *Store) Key(ctx context.Context, id string) (core.APIKey, error) {
	if checkText("id", id) != nil {
		return core.APIKey{}, core.NewError(core.CodeNotFound, keyMissing(id))
	}
	return oneKey(s.Read().QueryRowContext(ctx, "SELECT "+keyColumns+" FROM api_key WHERE id = $1", id), id, "reading an API key")
}

// Keys returns all API keys, including expired and revoked ones, newest first.
func (s *Store) Keys(ctx context.Context) ([]core.APIKey, error) {
	const doing = "listing API keys"
	rows, err := s.Read().QueryContext(ctx, "SELECT "+keyColumns+" FROM api_key ORDER BY created_at DESC, id")
	if err != nil {
		return nil, WrapError(doing, err)
	}
	defer func() { _ = rows.Close() }()
	var keys []core.APIKey
	for rows.Next() {
		k, err := scanKey(rows)
		if err != nil {
			return nil, WrapError(doing, err)
		}
		keys = append(keys, k)
	}
	return keys, WrapError(doing, rows.Err())
}

// RevokeKey revokes an API key and returns it; an earlier revocation is kept. The zero time means now. CodeNotFound when the key
// does not exist.
func (s *Store) RevokeKey(ctx context.Context, id string, at time.Time) (core.APIKey, error) {
	if at.IsZero() {
		at = time.Now()
	}
	if checkText("id", id) != nil {
		return core.APIKey{}, core.NewError(core.CodeNotFound, keyMissing(id))
	}
	var key core.APIKey
	err := s.Update(ctx, func(ctx context.Context, tx *Tx) error {
		var err error
		key, err = oneKey(tx.QueryRowContext(ctx, `UPDATE api_key
			SET revoked_at = CASE WHEN revoked_at = 0 THEN $2 ELSE revoked_at END
			WHERE id = $1 RETURNING `+keyColumns, id, Micros(at)), id, "revoking an API key")
		return err
	})
	if err != nil {
		return core.APIKey{}, err
	}
	return key, nil
}

func oneKey(row rowScanner, id, doing string) (core.APIKey, error) {
	key, err := scanKey(row)
	if errors.Is(err, sql.ErrNoRows) {
		return key, core.WrapError(core.CodeNotFound, keyMissing(id), err)
	}
	return key, WrapError(doing, err)
}

func keyMissing(id string) string { return fmt.Sprintf("there is no API key %q", id) }

func scanKey(row rowScanner) (core.APIKey, error) {
	var k core.APIKey
	var scopes string
	var created, expires, revoked int64
	if err := row.Scan(&k.ID, &k.Name, &scopes, &k.Hash, &created, &expires, &revoked); err != nil {
		return core.APIKey{}, err
	}
	if err := json.Unmarshal([]byte(scopes), &k.Scopes); err != nil {
		return core.APIKey{}, core.WrapError(core.CodeInternal, "decoding the scopes of an API key", err)
	}
	k.CreatedAt, k.ExpiresAt, k.RevokedAt = Time(created), Time(expires), Time(revoked)
	return k, nil
}
