package connection_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"tutti/internal/store/connection"
)

// TestNoPoolerError: errors of another kind are not of a pooler; what a pooler answers is tried by the store.
func TestNoPoolerError(t *testing.T) {
	if connection.PoolerError(errors.New("other")) != nil || connection.PoolerError(&pgconn.PgError{Code: connection.StateStarting}) != nil {
		t.Error("an error of another kind is one of the pooler")
	}
}
