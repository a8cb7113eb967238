package connection

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"tutti/internal/core"
)

// TestLostRetry: reads wait for the first lostWait of an outage, transactions only try again once.
func TestLostRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Lost
		tries := 0
		down := func() error { tries++; return core.WrapError(core.CodeUnavailable, "reading", io.ErrUnexpectedEOF) }
		took := func(wait time.Duration, try func() error) (time.Duration, int, error) {
			began := time.Now()
			tries = 0
			err := l.Retry(t.Context(), wait, try)
			return time.Since(began), tries, err
		}
		if d, n, err := took(0, down); d != 0 || n != 2 || core.CodeOf(err) != core.CodeUnavailable {
			t.Errorf("a transaction: %d tries in %s: %v", n, d, err)
		}
		if d, n, err := took(lostWait, down); d < lostWait || d > lostWait+lastBackoff || n < 10 || err == nil {
			t.Errorf("a read at the start of an outage: %d tries in %s: %v", n, d, err)
		}
		if d, n, err := took(lostWait, down); d != 0 || n != 2 || err == nil {
			t.Errorf("a read later in it: %d tries in %s: %v", n, d, err)
		}
		if err := l.Retry(t.Context(), 0, func() error { return nil }); err != nil {
			t.Error(err)
		}
		up := time.Now().Add(time.Second)
		if d, n, err := took(lostWait, func() error {
			if time.Now().Before(up) {
				return down()
			}
			return nil
		}); d < time.Second || d > time.Second+lastBackoff || n < 2 || err != nil {
			t.Errorf("a read amid the next outage: %d tries in %s: %v", n, d, err)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		tries = 0
		if err := l.Retry(ended, lostWait, down); err == nil || tries != 1 {
			t.Errorf("a read whose client has gone: %d tries: %v", tries, err)
		}
	})
}

func TestIsLost(t *testing.T) {
	for err, want := range map[error]bool{
		nil:                                  false,
		sql.ErrNoRows:                        false,
		context.Canceled:                     false,
		os.ErrDeadlineExceeded:               false,
		io.EOF:                               true,
		&pgconn.PgError{Code: "23505"}:       false,
		&pgconn.PgError{Code: stateShutdown}: true,
		&pgconn.PgError{Code: StateStarting}: true,
		&pgconn.PgError{Code: stateProtocol, Message: "server conn crashed?"}: true,
		&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}:                   true,
		&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}:                 false,
		errors.New("other"): false,
	} {
		for _, e := range []error{err, core.WrapError(core.CodeUnavailable, "reading", err)} {
			if got := isLost(e); got != want {
				t.Errorf("%v: %t", e, got)
			}
		}
		if got := isLost(fmt.Errorf("%w: %w", context.DeadlineExceeded, err)); err != nil && got {
			t.Errorf("amid a time-out, %v is lost", err)
		}
	}
}
