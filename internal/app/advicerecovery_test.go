//go:build !services

package app_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"tutti/internal/app"
	"tutti/internal/app/backup"
	"tutti/internal/app/storage"
	"tutti/internal/core"
)

// stopped returns a tutti with three published analyses, which is stopped, and their ids.
func stopped(t *testing.T) (b *busy, ids []string) {
	t.Helper()
	b = startBusy(t)
	for range 3 {
		id := b.submit("S1")
		b.publish("S1", id)
		ids = append(ids, id)
	}
	b.awaitConverged()
	b.stop()
	return b, ids
}

// inFolder returns a view of a world whose data folder is another one.
func (b *busy) inFolder(dir string) *busy {
	view := *b.world
	view.dir, view.app = dir, nil
	return &busy{builtIn: &builtIn{world: &view}}
}

// withQueueURL returns the configuration with a queue on a server.
func (b *busy) withQueueURL(url string) func(w *world) string {
	source := b.set.configuration
	return func(w *world) string {
		own := *w
		own.set.queueURL = url
		return source(&own)
	}
}

// serves starts a tutti, which must have the analyses in its store and, at last, in its index.
func (b *busy) serves(ids []string) {
	b.t.Helper()
	b.startReady()
	b.awaitConverged()
	if lost := missing(ids, b.storedAnalyses("PUBLISHED")); len(lost) > 0 {
		b.t.Errorf("the analyses %v are missing", lost)
	}
	b.stop()
}

func (b *busy) tryRestore(dir string) error {
	b.t.Helper()
	_, err := storage.Restore(b.t.Context(), b.config(), slog.New(slog.DiscardHandler), dir)
	return err
}

// TestAdviceOfRestores: each of the ways out that the error of a restore, or of a start after one, names leads to a tutti that has what was
// backed up.
func TestAdviceOfRestores(t *testing.T) {
	t.Parallel()
	b, ids := stopped(t)
	dir := filepath.Join(t.TempDir(), "backup")
	var archive bytes.Buffer
	if err := storage.WriteBackup(t.Context(), b.config(), slog.New(slog.DiscardHandler), "1.0", &archive); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Unpack(bytes.NewReader(archive.Bytes()), dir); err != nil {
		t.Fatal(err)
	}
	ok := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err, core.HintOf(err))
		}
	}
	// used is a folder with other data.
	used := func(t *testing.T) *busy {
		other := b.inFolder(filepath.Join(t.TempDir(), "data"))
		ok(t, other.tryRestore(dir))
		wantHint(t, other.tryRestore(dir), core.CodeConflict, "a backup is never mixed with other data: name an empty dataDir, or move the files away")
		return other
	}
	for name, follow := range map[string]func(t *testing.T) *busy{
		"another folder": func(t *testing.T) *busy {
			used(t)
			other := b.inFolder(filepath.Join(t.TempDir(), "data"))
			ok(t, other.tryRestore(dir))
			return other
		},
		"files moved away": func(t *testing.T) *busy {
			other := used(t)
			for _, part := range []string{backup.PartStore, backup.PartQueue, backup.PartIndex} {
				ok(t, os.Rename(filepath.Join(other.dir, part), filepath.Join(t.TempDir(), part)))
			}
			ok(t, other.tryRestore(dir))
			return other
		},
		"a configuration with another server": func(t *testing.T) *busy {
			other := b.inFolder(filepath.Join(t.TempDir(), "data"))
			other.set.configuration = b.withQueueURL("nats://127.0.0.1:1")
			wantHint(t, other.tryRestore(dir), core.CodeInvalid, "restore with a configuration that does not set it")
			other.set.configuration = b.set.configuration
			ok(t, other.tryRestore(dir))
			return other
		},
		"a folder that was moved": func(t *testing.T) *busy {
			other := b.inFolder(filepath.Join(t.TempDir(), "data"))
			ok(t, os.MkdirAll(other.dir, 0o700))
			marker := filepath.Join(other.dir, ".moved")
			ok(t, os.WriteFile(marker, []byte(`{"parts":["store"]}`), 0o600))
			wantHint(t, other.tryRestore(dir), core.CodeConflict,
				"use the configuration with that server; to return to the data of then, remove the file .moved from the folder")
			ok(t, os.Remove(marker))
			ok(t, other.tryRestore(dir))
			return other
		},
		"a backup that was damaged": func(t *testing.T) *busy {
			other, damaged := b.inFolder(filepath.Join(t.TempDir(), "data")), filepath.Join(t.TempDir(), "damaged")
			ok(t, os.CopyFS(damaged, os.DirFS(dir)))
			ok(t, os.Truncate(filepath.Join(damaged, "index", "index.db"), 10))
			wantHint(t, other.tryRestore(damaged), core.CodeInvalid, "use another backup, or another copy of this one")
			ok(t, other.tryRestore(dir))
			return other
		},
		"a backup that was interrupted": func(t *testing.T) *busy {
			other, part := b.inFolder(filepath.Join(t.TempDir(), "data")), filepath.Join(t.TempDir(), "part")
			if _, err := backup.Unpack(bytes.NewReader(archive.Bytes()[:archive.Len()/2]), part); core.HintOf(err) != "the log of the server says why" {
				t.Errorf("half of an archive: %v", err)
			}
			ok(t, os.MkdirAll(part, 0o700)) // as of a process that was killed while it wrote
			wantHint(t, other.tryRestore(part), core.CodeInvalid, "the manifest is written last: use another backup if this one was interrupted")
			ok(t, other.tryRestore(dir))
			return other
		},
		"a restore that was interrupted": func(t *testing.T) *busy {
			other := b.inFolder(filepath.Join(t.TempDir(), "data"))
			ok(t, other.tryRestore(dir))
			ok(t, os.WriteFile(filepath.Join(other.dir, ".restoring"), []byte("store\nqueue\nindex\n"), 0o600))
			a, err := app.New(other.config(), app.Options{})
			ok(t, err)
			wantHint(t, a.Start(t.Context()), core.CodeConflict, "repeat tutti restore, which first removes what the interrupted one wrote")
			ok(t, other.tryRestore(dir))
			return other
		},
	} {
		t.Run(name, func(t *testing.T) { follow(t).serves(ids) })
	}
}

// TestAdviceOfMoves: so do those of the errors of a move, of a backup and of a migration.
func TestAdviceOfMoves(t *testing.T) {
	t.Parallel()
	b, ids := stopped(t)
	of := func(url string) *busy {
		view := b.inFolder(b.dir)
		view.set.configuration = b.withQueueURL(url)
		return view
	}
	target := of(externalQueue(t))
	move := func(to *busy) error {
		_, err := storage.Move(t.Context(), b.config(), to.config(), slog.New(slog.DiscardHandler), func(string) {})
		return err
	}
	log := slog.New(slog.DiscardHandler)

	b.startReady()
	wantHint(t, move(target), core.CodeConflict, "stop the server that uses the data folder, then move")
	wantHint(t, storage.WriteBackup(t.Context(), b.config(), log, "1.0", new(bytes.Buffer)), core.CodeConflict, "use --server instead of --config to back up a running server")
	b.mustSend(http.MethodGet, "/backup", "", http.StatusOK)
	_, err := storage.OpenMigrationTarget(t.Context(), b.config(), log)
	wantHint(t, err, core.CodeConflict, "stop the server, migrate, and start it again")
	b.stop()
	migration, err := storage.OpenMigrationTarget(t.Context(), b.config(), log)
	if err == nil {
		err = migration.Close(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	b.serves(ids)

	wantHint(t, move(b), core.CodeInvalid, "set store.url, queue.url or index.url in it; variables such as TUTTI_STORE_URL apply to both configurations")
	elsewhere := of(externalQueue(t))
	elsewhere.dir = t.TempDir()
	wantHint(t, move(elsewhere), core.CodeInvalid, "set store.url in the new configuration, or keep dataDir")
	if err := move(target); err != nil {
		t.Fatal(err, core.HintOf(err))
	}
	const moved = "use the configuration with that server; to return to the data of then, remove the file .moved from the folder"
	a, err := app.New(b.config(), app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	wantHint(t, a.Start(t.Context()), core.CodeConflict, moved)
	target.serves(ids)
	if err := os.Remove(filepath.Join(b.dir, ".moved")); err != nil {
		t.Fatal(err)
	}
	b.serves(ids)

	// A queue that is on a server cannot be moved to another one by this command: it stays where it is.
	again := of(externalQueue(t))
	_, err = storage.Move(t.Context(), target.config(), again.config(), log, func(string) {})
	wantHint(t, err, core.CodeInvalid, "keep queue.url; only what runs inside the process can be moved")
	target.serves(ids)
}
