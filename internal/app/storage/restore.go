package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tutti/internal/app/backup"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/queue/embedded"
)

// restoringFile is the name of the file in the data folder that exists while a restore is in progress, which then locks it, and after one
// was interrupted. Its lines are the parts that the restore writes.
const restoringFile = ".restoring"

// Restore fills the data folder of a configuration from the backup in dir. Its folders of queue, store and index must be empty. It
// records that a run of every repository is due, which the next start queues: the upstreams, and the store, may differ from the index.
// It can be repeated after it was interrupted: it then removes what the interrupted one wrote.
// Errors: CodeInvalid when the backup is not complete, was altered, or has a part that the configuration does not embed; CodeConflict
// when the data folder is not empty. After an error the data folder is as before.
func Restore(ctx context.Context, cfg config.Config, log *slog.Logger, dir string) (m backup.Manifest, err error) {
	folder, err := backup.Open(dir)
	if err != nil {
		return m, err
	}
	r := &restore{Storage: forCommand(cfg, log, ""), folder: folder}
	if err := r.check(); err != nil {
		return m, err
	}
	marker, err := openMarker(cfg)
	if err != nil {
		return m, err
	}
	if err := r.begin(marker); err != nil {
		return m, errors.Join(err, marker.release())
	}
	if err := r.fill(ctx); err != nil {
		return m, errors.Join(err, r.clear(r.own()...), marker.remove())
	}
	return folder.Manifest, marker.remove()
}

type restore struct {
	*Storage
	folder *backup.Folder
}

func (r *restore) path(part string) string { return filepath.Join(r.cfg.DataDir, part) }

// check returns why the backup cannot be restored with this configuration.
func (r *restore) check() error {
	for _, part := range dataParts(r.cfg) {
		if r.folder.Has(part.name) && part.url != "" {
			return &core.Error{
				Code: core.CodeInvalid, Message: fmt.Sprintf("the backup contains the %s, but the configuration has %s", part.name, part.key),
				Hint: "restore with a configuration that does not set it",
			}
		}
		if part.url != "" {
			continue // what the folder has of it is not used
		}
		if err := checkMoved(r.cfg, part.name); err != nil {
			return err
		}
	}
	return nil
}

// own returns the parts that are in the data folder.
func (r *restore) own() (parts []string) {
	for _, part := range dataParts(r.cfg) {
		if part.url == "" {
			parts = append(parts, part.name)
		}
	}
	return parts
}

// begin removes what an interrupted restore wrote, checks that the folders are empty, and records the parts in the marker.
func (r *restore) begin(marker *marker) error {
	if err := r.clear(marker.parts...); err != nil {
		return err
	}
	for _, part := range r.own() {
		files, err := hasFiles(r.path(part))
		if err != nil {
			return core.WrapError(core.CodeUnavailable, "reading the data folder", err)
		}
		if files {
			return &core.Error{
				Code: core.CodeConflict, Message: fmt.Sprintf("the data folder %s is not empty: it has files in %s", r.cfg.DataDir, part),
				Hint: "a backup is never mixed with other data: name an empty dataDir, or move the files away",
			}
		}
	}
	return marker.write(r.own())
}

// hasFiles reports whether a folder of a part has files. A lock stays behind when a folder is emptied by a pattern such as *.
func hasFiles(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), ".") }), nil
}

// fill writes the parts.
func (r *restore) fill(ctx context.Context) error {
	for _, part := range []string{backup.PartStore, backup.PartIndex} {
		if err := r.folder.CopyPart(part, r.path(part)); err != nil {
			return err
		}
	}
	if r.cfg.Queue.URL != "" {
		q, err := queue.Connect(ctx, r.queueConfig())
		return requestRunAll(ctx, q, err)
	}
	if err := r.fillQueue(ctx); err != nil {
		return err
	}
	return backup.SyncFolders(r.cfg.DataDir)
}

// fillQueue restores the streams of the backup, if it has any, and records in them that a run of every repository is due.
func (r *restore) fillQueue(ctx context.Context) error {
	dir := r.path(backup.PartQueue)
	server, err := embedded.Start(ctx, embedded.Config{Dir: dir, SyncLater: true, Logger: r.log})
	if err != nil {
		return err
	}
	streams := r.folder.Streams(backup.PartQueue)
	err = queue.Restore(ctx, server, r.queueConfig(), func(stream string, restore func(io.Reader) error) error {
		if !slices.Contains(streams, stream) {
			return nil
		}
		return r.folder.Stream(backup.PartQueue, stream, restore)
	})
	if err == nil {
		q, openErr := queue.ConnectInProcess(ctx, server, r.queueConfig())
		err = requestRunAll(ctx, q, openErr)
	}
	if err = errors.Join(err, server.Stop(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	return backup.SyncFiles(dir)
}

// requestRunAll records in a queue that was opened with err that a run of every repository is due, and closes it.
func requestRunAll(ctx context.Context, q *queue.Queue, err error) error {
	if err != nil {
		return err
	}
	return errors.Join(q.RequestRunAll(ctx, queue.RunAllRecords), q.Close(context.WithoutCancel(ctx)))
}

// clear removes parts from the data folder.
func (r *restore) clear(parts ...string) error {
	var errs []error
	for _, part := range parts {
		errs = append(errs, os.RemoveAll(r.path(part)))
	}
	return errors.Join(errs...)
}
