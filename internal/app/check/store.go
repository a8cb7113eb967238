package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/store"
	"tutti/internal/upstream"
)

const (
	subjectStore = "store"
	// storeFolder is the folder of the data folder that SQLite's file is kept in, storeLock the file in it that is locked
	// while a tutti runs on it.
	storeFolder, storeLock = "store", ".lock"
)

// looked gives what was found of the store; the first call looks, for all.
type looked func() (store.Report, error)

func storeConfig(cfg config.Config) store.Config {
	return store.Config{URL: cfg.Store.URL.Reveal(), Dir: filepath.Join(cfg.DataDir, storeFolder)}
}

func storeProbe(cfg config.Config, look looked) probe {
	if cfg.Store.URL == "" {
		return func(context.Context) []Finding {
			return []Finding{sqliteStore(filepath.Join(cfg.DataDir, storeFolder), look)}
		}
	}
	return func(context.Context) []Finding { return postgresStore(cfg, look) }
}

// sqliteStore looks at the folder, then at the file in it.
func sqliteStore(dir string, look looked) Finding {
	f := folder(subjectStore, dir, storeLock)
	if f.Status == StatusFail {
		return f
	}
	_, running := holder(filepath.Join(dir, storeLock))
	r, err := look()
	switch {
	case err != nil && running:
		return f // whoever runs it can read it
	case err != nil:
		return Finding{subjectStore, StatusFail, "embedded; " + core.MessageOf(err), core.HintOf(err)}
	case !r.Exists:
		return f
	}
	if err := canWrite(r.File); err != nil && !running {
		return Finding{
			subjectStore, StatusFail, fmt.Sprintf("embedded; %s cannot be written: %s", r.File, cause(err)),
			"give it to tutti's user, together with the files beside it",
		}
	}
	if newer, ok := newerTables(r); ok {
		return newer
	}
	f.Message += "; " + tablesState(r)
	return f
}

// canWrite opens a file that is there to write, and leaves it as it is.
func canWrite(file string) error {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it went meanwhile
	}
	if err != nil {
		return err
	}
	return f.Close()
}

func newerTables(r store.Report) (Finding, bool) {
	if r.Version <= r.Newest {
		return Finding{}, false
	}
	return Finding{
		subjectStore, StatusFail,
		fmt.Sprintf("a newer tutti has written the store: its tables are of version %d, this one knows %d", r.Version, r.Newest),
		"start that version, or restore a copy of the store from before",
	}, true
}

// tablesState puts in words how far the tables are.
func tablesState(r store.Report) string {
	switch {
	case r.Unreadable:
		return "its database was not closed, and is mended at the next start"
	case r.Version == 0:
		return "its tables will be made"
	case r.Version < r.Newest:
		return fmt.Sprintf("its tables will be brought from version %d to %d", r.Version, r.Newest)
	default:
		return "its tables are up to date"
	}
}

func postgresStore(cfg config.Config, look looked) []Finding {
	host := hostOf(cfg.Store.URL.Reveal())
	r, err := look()
	if err != nil {
		return []Finding{postgresFault(host, err)}
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
		return fail("takes no changes", "name the primary server in store.url, and see that default_transaction_read_only is off")
	case p.Schema == "":
		return fail("has no schema for the tables", "make the schema that the user's search_path names, or set another search_path")
	case len(p.Missing) > 0:
		return fail("does not let this user do all with the tables of tutti: "+strings.Join(p.Missing, ", ")+" are missing",
			"give the user all privileges on the tables in schema "+p.Schema+", or make it their owner")
	case r.Version < r.Newest && !p.CanCreate:
		return fail("does not let this user make tables in schema "+p.Schema, "GRANT CREATE ON SCHEMA "+p.Schema+" to the user, or make it the owner of the database")
	}
	found := []Finding{{subjectStore, StatusOK, r.Engine + " at " + host + "; " + tablesState(r), ""}}
	if !p.Durable {
		found = append(found, Finding{
			subjectStore, StatusWarn, host + " does not wait for the disk: what it says is stored can be lost when the machine stops",
			"set fsync and synchronous_commit on",
		})
	}
	if p.Encoding != "UTF8" {
		found = append(found, Finding{
			subjectStore, StatusWarn, "the database at " + host + " is encoded in " + p.Encoding + ", and refuses letters that this lacks",
			"make the database with ENCODING 'UTF8'",
		})
	}
	return found
}

// postgresFault puts in words why the database could not be looked at, and how to mend that.
func postgresFault(host string, err error) Finding {
	f := Finding{subjectStore, StatusFail, host + ": " + core.MessageOf(err), core.HintOf(err)}
	if f.Hint != "" || core.CodeOf(err) != core.CodeUnavailable {
		return f
	}
	if reason, hint := upstream.ConnectionFailure(err); hint != "" {
		f.Message, f.Hint = host+" does not answer: "+reason, hint
		return f
	}
	f.Hint = "look at the database server's log, and at the sslmode in store.url"
	return f
}
