package connection

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"tutti/internal/base/retry"
)

const (
	// lostWait is how long after PostgreSQL was lost a read waits for it: a restart takes a few seconds.
	lostWait = 5 * time.Second
	// firstBackoff is the longest delay before a read tries again the second time; it doubles with each try, up to lastBackoff.
	firstBackoff, lastBackoff = 10 * time.Millisecond, 256 * time.Millisecond
	// pingAfter is how long a connection may be unused before it is pinged.
	pingAfter = time.Second
)

// SQLSTATEs of PostgreSQL (its manual, appendix A).
const (
	stateShutdown = "57P01"
	stateCrash    = "57P02"
	// StateStarting is that of a server which starts or shuts down.
	StateStarting = "57P03"
	// stateProtocol is that of every error of PgBouncer, of connections and of those that it lost.
	stateProtocol = "08P01"
)

// State returns PostgreSQL's SQLSTATE, "" for other errors.
func State(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// Lost is when connections to PostgreSQL were lost.
type Lost struct {
	// last is when a statement last found its connection lost, since when the first did after the last success. Unix
	// nanoseconds, 0 for never.
	last, since atomic.Int64
}

// Ping returns what the pool asks before it uses a connection again. One that was unused for a while, or since before another one was lost, is
// pinged: after a restart of PostgreSQL all of them are closed. A network that drops packets is noticed within a time, because the pool
// tries several connections, one after the other. It returns true for a connection that is closed, which the pool's own ping then finds.
func (l *Lost) Ping(within time.Duration) func(context.Context, stdlib.ShouldPingParams) bool {
	return func(ctx context.Context, p stdlib.ShouldPingParams) bool {
		if p.IdleDuration <= pingAfter && time.Now().Add(-p.IdleDuration).UnixNano() > l.last.Load() {
			return false
		}
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		return p.Conn.Ping(ctx) != nil // which has closed the connection
	}
}

// Retry calls try again, once at once and then for wait after PostgreSQL was lost, while it fails with a lost connection.
func (l *Lost) Retry(ctx context.Context, wait time.Duration, try func() error) error {
	for tries := 0; ; tries++ {
		err := try()
		if !isLost(err) || ctx.Err() != nil {
			if err == nil && l.since.Load() != 0 {
				l.since.Store(0)
			}
			return err
		}
		now := time.Now().UnixNano()
		l.last.Store(now)
		l.since.CompareAndSwap(0, now)
		switch {
		case tries == 0:
		case now-l.since.Load() >= int64(wait) || retry.Sleep(ctx, retry.Delay(tries-1, firstBackoff, lastBackoff)) != nil:
			return err
		}
	}
}

// isLost reports whether a statement failed because its connection was closed, or none could be opened. It may have run.
func isLost(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if state := State(err); state != "" {
		return slices.Contains([]string{stateShutdown, stateCrash, StateStarting, stateProtocol}, state)
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return false
	}
	_, network := errors.AsType[*net.OpError](err)
	return network || pgconn.SafeToRetry(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, driver.ErrBadConn)
}

// Reader reads PostgreSQL, and tries again when the connection was lost. It is safe for concurrent use.
type Reader struct {
	DB   *sql.DB
	Lost *Lost
}

// ExecContext runs a statement once.
func (r Reader) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return r.DB.ExecContext(ctx, query, args...)
}

// QueryContext runs a statement that returns rows. An error after the first row is returned by the rows.
func (r Reader) QueryContext(ctx context.Context, query string, args ...any) (rows *sql.Rows, err error) {
	err = r.Lost.Retry(ctx, lostWait, func() error {
		rows, err = r.DB.QueryContext(ctx, query, args...) //nolint:sqlclosecheck,rowserrcheck // the caller's
		return err
	})
	return rows, err
}

// QueryRowContext runs a statement that returns one row at most.
func (r Reader) QueryRowContext(ctx context.Context, query string, args ...any) (row *sql.Row) {
	_ = r.Lost.Retry(ctx, lostWait, func() error { // the row has the error
		row = r.DB.QueryRowContext(ctx, query, args...)
		return row.Err()
	})
	return row
}
