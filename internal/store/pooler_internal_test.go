package store

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"tutti/internal/core"
)

// TestPoolerErrors: what PgBouncer answers, always with one SQLSTATE, is told apart by its text.
func TestPoolerErrors(t *testing.T) {
	for text, want := range map[string]struct {
		code core.Code
		hint string
	}{
		"SASL authentication failed":                     {core.CodeForbidden, "check user and password in store.url, and the users of the pooler"},
		"password authentication failed":                 {core.CodeForbidden, "check user and password in store.url, and the users of the pooler"},
		"no such user: eve":                              {core.CodeForbidden, "check user and password in store.url, and the users of the pooler"},
		"no such database: none":                         {core.CodeForbidden, "check the name at the end of store.url, and the databases of the pooler"},
		"SSL required":                                   {core.CodeForbidden, "set sslmode=verify-full in store.url"},
		"unsupported startup parameter: search_path":     {core.CodeInvalid, "remove it from store.url, and set it for the user: ALTER ROLE … SET search_path = …"},
		"query_wait_timeout":                             {core.CodeUnavailable, "check the log of the pooler, and whether it reaches its server"},
		"server login has been failing, try again later": {core.CodeUnavailable, "check the log of the pooler, and whether it reaches its server"},
	} {
		err := fmt.Errorf("failed to connect: %w", &pgconn.PgError{Severity: "FATAL", Code: "08P01", Message: text})
		for _, got := range []error{openError(err), connectError(err)} {
			if core.CodeOf(got) != want.code || core.HintOf(got) != want.hint {
				t.Errorf("%s: got %s, %q", text, core.CodeOf(got), core.HintOf(got))
			}
		}
	}
}
