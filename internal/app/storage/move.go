package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tutti/internal/app/backup"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/queue"
)

// Moved is what Move has done.
type Moved struct {
	// Parts are the parts that are on other servers now, of backup.PartStore, PartQueue and PartIndex.
	Parts []string  `json:"parts"`
	At    time.Time `json:"at"`
	// Rows and Messages are the numbers of those that were copied.
	Rows     int64 `json:"rows"`
	Messages int   `json:"messages"`
}

const (
	// movedFile is the name of the file in the data folder that names the parts that are no longer used there.
	movedFile = ".moved"
	// movingFile is the name of the file in the data folder from which something is moved, until the move ends or fails.
	movingFile = ".moving"
)

// Move moves what from runs inside the process and to names servers for: it copies the rows of the store and the messages of the queue,
// and records in to's queue that a run of every repository is due, which fills the index. It only adds the file .moved to the data folder, which keeps a
// tutti from using the parts that were moved. It can be repeated after an error. Errors: CodeInvalid when the configurations have nothing
// to move, or differ in what stays; CodeConflict while a tutti runs on the data folder, or when the other servers have other data.
//
// progress is called with a line of text before and after each part is copied.
func Move(ctx context.Context, from, to config.Config, log *slog.Logger, progress func(line string)) (m Moved, err error) {
	if m.Parts, err = partsToMove(from, to); err != nil {
		return m, err
	}
	for _, part := range m.Parts {
		if err := checkUsable(from, part); err != nil {
			return m, err
		}
	}
	source, target := forCommand(from, log, ""), forCommand(to, log, "")
	defer func() {
		ending := context.WithoutCancel(ctx)
		err = errors.Join(err, target.opts.Cleanup.Run(ending), unmarkMoving(from), source.opts.Cleanup.Run(ending))
		if err != nil && core.HintOf(err) == "" {
			err = &core.Error{
				Code: core.CodeOf(err), Message: "moving to other servers", Err: err,
				Hint: "the data folder is as before, and can be used: fix the cause, then repeat the command",
			}
		}
	}()
	opens := []func(context.Context) error{source.OpenQueue, source.OpenStore}
	if from.Queue.URL != "" && from.Store.URL.Reveal() != "" {
		opens = append(opens, source.OpenIndex) // the only part that is locked while a tutti runs on the folder
	}
	for _, open := range opens {
		if err := open(ctx); err != nil {
			return m, inUse(err, "stop the server that uses the data folder, then move")
		}
	}
	copies := struct{ store, queue bool }{slices.Contains(m.Parts, backup.PartStore), slices.Contains(m.Parts, backup.PartQueue)}
	final := source.Queue
	if copies.queue {
		if err := target.OpenQueue(ctx); err != nil {
			return m, err
		}
		final = target.Queue
	}
	if err := beginMove(ctx, from, source.Queue, final, m.Parts); err != nil {
		return m, err
	}
	if copies.store {
		if err := target.OpenStore(ctx); err != nil {
			return m, err
		}
		progress("copying the store to PostgreSQL")
		if m.Rows, err = source.Store.CopyTo(ctx, target.Store); err != nil {
			return m, err
		}
		progress(fmt.Sprintf("the store has all %d rows", m.Rows))
	}
	if copies.queue {
		progress("copying the queue to NATS")
		if m.Messages, err = source.Queue.CopyTo(ctx, target.Queue); err != nil {
			return m, err
		}
		progress(fmt.Sprintf("the queue has all %d messages", m.Messages))
	}
	if err := final.RequestRunAll(ctx, queue.RunAllRecords); err != nil {
		return m, err
	}
	if err := final.SetMoving(ctx); err != nil {
		return m, err
	}
	m.At = time.Now().UTC()
	return m, markMoved(from, m)
}

// dataPart is a part of the data: its name, the key that moves it to another server, and that key's value.
type dataPart struct{ name, key, url string }

// dataParts returns the parts with the values of a configuration.
func dataParts(cfg config.Config) []dataPart {
	return []dataPart{
		{backup.PartStore, "store.url", cfg.Store.URL.Reveal()},
		{backup.PartQueue, "queue.url", cfg.Queue.URL.Reveal()},
		{backup.PartIndex, "index.url", cfg.Index.URL.Reveal()},
	}
}

// beginMove prepares the queue that is used after a move, and records in it and in the data folder that the move has begun.
func beginMove(ctx context.Context, from config.Config, source, final *queue.Queue, parts []string) error {
	if final != source {
		if err := source.PrepareCopy(ctx, final); err != nil {
			return err
		}
	}
	if err := final.SetMoving(ctx, parts...); err != nil { // first: nothing may start there once the folder says that a move has begun
		return err
	}
	return markMoving(from)
}

// partsToMove returns the parts that from embeds and to does not. What to embeds must stay in its folder.
func partsToMove(from, to config.Config) ([]string, error) {
	var parts []string
	after := dataParts(to)
	for i, part := range dataParts(from) {
		switch {
		case part.url == "" && after[i].url != "":
			parts = append(parts, part.name)
		case part.url != after[i].url:
			return nil, &core.Error{
				Code: core.CodeInvalid, Message: fmt.Sprintf("the %s is on other servers already, and the new configuration names different ones or none", part.name),
				Hint: "keep " + part.key + "; only what runs inside the process can be moved",
			}
		case part.url == "" && !sameFolder(from.DataDir, to.DataDir):
			return nil, &core.Error{
				Code: core.CodeInvalid, Message: fmt.Sprintf("the %s stays inside the process, but the new configuration has another dataDir", part.name),
				Hint: "set " + part.key + " in the new configuration, or keep dataDir",
			}
		}
	}
	if len(parts) == 0 {
		return nil, &core.Error{
			Code: core.CodeInvalid, Message: "there is nothing to move: the new configuration names no servers that the other one does not name",
			Hint: "set store.url, queue.url or index.url in it; variables such as TUTTI_STORE_URL apply to both configurations",
		}
	}
	return parts, nil
}

func sameFolder(a, b string) bool {
	first, err1 := filepath.Abs(a)
	second, err2 := filepath.Abs(b)
	return err1 == nil && err2 == nil && first == second
}

// markMoved records in the data folder which parts of it are no longer used. Parts that were moved before stay recorded.
func markMoved(from config.Config, m Moved) error {
	before, err := readMoved(from)
	if err != nil {
		return err
	}
	m.Parts = append(slices.DeleteFunc(before.Parts, func(part string) bool { return slices.Contains(m.Parts, part) }), m.Parts...)
	text, err := json.Marshal(m)
	if err == nil {
		path := filepath.Join(from.DataDir, movedFile)
		if err = os.WriteFile(path+".new", append(text, '\n'), 0o600); err == nil {
			err = errors.Join(backup.SyncFiles(path+".new"), os.Rename(path+".new", path), backup.SyncFolders(from.DataDir))
		}
	}
	if err != nil {
		return core.WrapError(core.CodeUnavailable, "everything was copied, but the data folder could not be marked as moved", err)
	}
	return nil
}

// markMoving records in the data folder that a move has begun.
func markMoving(from config.Config) error {
	err := os.WriteFile(filepath.Join(from.DataDir, movingFile), nil, 0o600)
	if err == nil {
		err = backup.SyncFolders(from.DataDir)
	}
	if err != nil {
		return core.WrapError(core.CodeUnavailable, "marking the data folder", err)
	}
	return nil
}

// unmarkMoving removes the record of markMoving, if there is one.
func unmarkMoving(from config.Config) error {
	if err := os.Remove(filepath.Join(from.DataDir, movingFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return core.WrapError(core.CodeUnavailable, "removing "+movingFile+" from the data folder", err)
	}
	return nil
}

// CheckMove returns an error when the servers of the configuration are those of a move that has not ended. It logs once that a move from the
// data folder was interrupted.
func (s *Storage) CheckMove(ctx context.Context) error {
	parts, err := s.Queue.Moving(ctx)
	if err != nil {
		return err
	}
	for _, part := range dataParts(s.cfg) {
		if part.url != "" && slices.Contains(parts, part.name) {
			return &core.Error{
				Code: core.CodeConflict, Message: fmt.Sprintf("a move to the servers of the configuration is in progress or was interrupted: its %s is not complete", part.name),
				Hint: "repeat tutti move, which completes it; until then only the previous configuration can be used",
			}
		}
	}
	if _, err := os.Lstat(filepath.Join(s.cfg.DataDir, movingFile)); err != nil {
		return nil //nolint:nilerr // a folder that cannot be read is reported when it is opened
	}
	s.log.Warn("a move to other servers was interrupted; the data folder is complete and is used. To repeat tutti move later, "+
		"empty the database of store.url first", "data_dir", s.cfg.DataDir)
	return unmarkMoving(s.cfg)
}

func readMoved(cfg config.Config) (m Moved, err error) {
	text, err := os.ReadFile(filepath.Join(cfg.DataDir, movedFile))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return m, nil
	case err == nil:
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return m, core.WrapError(core.CodeUnavailable, "reading "+movedFile+" of the data folder", err)
	}
	return m, nil
}

// checkUsable returns an error if a part of the data folder is not complete, or not the current one: while a restore has not ended, and
// after a move.
func checkUsable(cfg config.Config, part string) error {
	if err := checkRestored(cfg); err != nil {
		return err
	}
	return checkMoved(cfg, part)
}

// checkMoved returns an error if a part of the data folder was moved to another server.
func checkMoved(cfg config.Config, part string) error {
	m, err := readMoved(cfg)
	if err != nil || !slices.Contains(m.Parts, part) {
		return err
	}
	return &core.Error{
		Code: core.CodeConflict, Message: fmt.Sprintf("the %s of the data folder %s was moved to another server at %s", part, cfg.DataDir, m.At.Format(time.RFC3339)),
		Hint: "use the configuration with that server; to return to the data of then, remove the file " + movedFile + " from the folder",
	}
}
