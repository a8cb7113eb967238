package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tutti/internal/app/settings"
	"tutti/internal/base/disk"
	"tutti/internal/base/tlsconfig"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/store"
)

const (
	subjectStore = "store"
	// storeLock is the file in the folder of SQLite's file that a running tutti locks.
	storeLock = ".lock"
)

// inspectStore returns the state of the store. The first call reads it; later calls return the same.
type inspectStore func() (store.Report, error)

func storeProbe(cfg config.Config, inspect inspectStore) probe {
	if cfg.Store.URL == "" {
		return func(context.Context) []Finding {
			return []Finding{sqliteStore(settings.Store(cfg).Dir, inspect)}
		}
	}
	return func(context.Context) []Finding { return postgresStore(cfg, inspect) }
}

// sqliteStore checks the folder, then the database in it.
func sqliteStore(dir string, inspect inspectStore) Finding {
	f := folder(subjectStore, dir, storeLock)
	if f.Status == StatusFail {
		return f
	}
	_, running := disk.LockHolder(filepath.Join(dir, storeLock))
	r, err := inspect()
	switch {
	case err != nil && running:
		return f // in use by a running tutti, which can read it
	case err != nil:
		return Finding{subjectStore, StatusFail, "embedded; " + core.MessageOf(err), core.HintOf(err)}
	case !r.Exists:
		return f
	}
	if err := canWrite(r.File); err != nil && !running {
		return Finding{
			subjectStore, StatusFail, fmt.Sprintf("embedded; %s cannot be written: %s", r.File, cause(err)),
			"grant tutti's user write access to it and to the files beside it",
		}
	}
	if newer, ok := newerTables(r); ok {
		return newer
	}
	f.Message += "; " + TablesState(r)
	return f
}

// canWrite opens an existing file for writing and leaves it unchanged.
func canWrite(file string) error {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed since it was read
	}
	if err != nil {
		return err
	}
	return f.Close()
}

func newerTables(r store.Report) (Finding, bool) {
	return Finding{subjectStore, StatusFail, TablesState(r), "start the newer version, or restore an older backup of the store"}, r.Version > r.Newest
}

// TablesState describes the version of the tables, and what the next start does with them.
func TablesState(r store.Report) string {
	switch {
	case r.Version > r.Newest:
		return fmt.Sprintf("the store was written by a newer tutti: its tables have version %d, this tutti supports %d", r.Version, r.Newest)
	case r.Unreadable:
		return "its database was not closed and is recovered at the next start"
	case r.Version == 0:
		return "its tables will be created"
	case r.Version < r.Newest:
		return fmt.Sprintf("its tables will be migrated from version %d to %d", r.Version, r.Newest)
	default:
		return "its tables are up to date"
	}
}

func postgresStore(cfg config.Config, inspect inspectStore) []Finding {
	host := hostOf(cfg.Store.URL.Reveal())
	r, err := inspect()
	if err != nil {
		return []Finding{postgresFailure(host, err)}
	}
	if newer, ok := newerTables(r); ok {
		return []Finding{newer}
	}
	fail := func(message, hint string) []Finding {
		return []Finding{{subjectStore, StatusFail, r.Engine + " at " + host + " " + message, hint}}
	}
	p := r.Postgres
	switch {
	case p.ReadOnly:
		return fail("is read-only", "set store.url to the primary server, and check that default_transaction_read_only is off")
	case p.Schema == "":
		return fail("has no schema for the tables", "create the schema that the user's search_path names, or set another search_path")
	case len(p.Missing) > 0:
		return fail("does not grant this user all privileges on tutti's tables; missing: "+strings.Join(p.Missing, ", "),
			"grant the user all privileges on the tables in schema "+p.Schema+", or make it their owner")
	case r.Version < r.Newest && !p.CanCreate:
		return fail("does not let this user create tables in schema "+p.Schema, "GRANT CREATE ON SCHEMA "+p.Schema+" to the user, or make it the owner of the database")
	}
	at := r.Engine + " at " + host
	if p.Pooled {
		at += ", behind a connection pooler, whose database must name only the primary server as its host"
	}
	found := []Finding{{subjectStore, StatusOK, at + "; " + TablesState(r), ""}}
	if !p.Durable {
		found = append(found, Finding{
			subjectStore, StatusWarn, host + " does not sync commits to disk: stored changes can be lost when the machine stops",
			"set fsync and synchronous_commit on",
		})
	}
	if p.Encoding != "UTF8" {
		found = append(found, Finding{
			subjectStore, StatusWarn, "the database at " + host + " is encoded in " + p.Encoding + ", and rejects characters that this encoding lacks",
			"create the database with ENCODING 'UTF8'",
		})
	}
	return found
}

// postgresFailure returns the finding for a database that could not be inspected.
func postgresFailure(host string, err error) Finding {
	f := Finding{subjectStore, StatusFail, host + ": " + core.MessageOf(err), core.HintOf(err)}
	if f.Hint != "" || core.CodeOf(err) != core.CodeUnavailable {
		return f
	}
	if reason, hint := tlsconfig.Failure(err); hint != "" {
		f.Message, f.Hint = host+" does not answer: "+reason, hint
		return f
	}
	f.Hint = "check the database server's log, and the sslmode in store.url"
	return f
}
