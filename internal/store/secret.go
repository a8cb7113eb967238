package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"

	"tutti/internal/core"
)

// secretBytes is the length of a secret.
const secretBytes = 32

// Secret returns the 32 random bytes that all processes on this database share under a name. The first call creates them.
func (s *Store) Secret(ctx context.Context, name string) ([]byte, error) {
	if err := checkText("name of a secret", name); err != nil {
		return nil, err
	}
	kept, err := readSecret(ctx, s.Read(), name)
	if err != nil || kept != nil {
		return kept, err
	}
	made := make([]byte, secretBytes)
	rand.Read(made)
	err = s.Update(ctx, func(ctx context.Context, tx *Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO secret (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING", name, made)
		return WrapError("storing a secret", err)
	})
	if err != nil {
		return nil, err
	}
	return readSecret(ctx, s.Read(), name) // another process may have created it first
}

// readSecret returns the secret with a name, nil when there is none.
func readSecret(ctx context.Context, conn Conn, name string) ([]byte, error) {
	var value []byte
	err := conn.QueryRowContext(ctx, "SELECT value FROM secret WHERE name = $1", name).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err == nil && len(value) != secretBytes {
		return nil, core.NewError(core.CodeInternal, "a secret in the store has the wrong length")
	}
	return value, WrapError("reading a secret", err)
}
