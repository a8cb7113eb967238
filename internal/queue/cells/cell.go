package cells

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/queue/natsconn"
	"tutti/internal/queue/natsread"
	"tutti/internal/queue/subjects"
)

// KeyCell is the Prefix of the keys of cells.
const KeyCell = "slot."

// Cells are named compare-and-swap cells that hold one string each, such as a job's id.
type Cells struct{ bucket *Bucket }

// Cell returns the job that a named cell holds, with the revision for SetCell; "" and 0 when it is empty.
func (c *Cells) Cell(ctx context.Context, name string) (jobID string, revision uint64, err error) {
	entry, err := c.bucket.KV.Get(ctx, cellKey(name))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, natsconn.WrapError("reading a cell", err)
	}
	return string(entry.Value()), entry.Revision(), nil
}

// SetCell puts a job into a cell, or empties it with an empty jobID. revision is the one that Cell returned; CodeConflict
// when the cell changed since. Emptying an empty cell is success.
func (c *Cells) SetCell(ctx context.Context, name, jobID string, revision uint64) error {
	var err error
	switch key := cellKey(name); {
	case jobID != "" && revision == 0:
		err = c.bucket.Create(ctx, key, []byte(jobID))
	case jobID != "":
		err = c.bucket.Update(ctx, key, []byte(jobID), revision)
	case revision != 0:
		err = c.bucket.Delete(ctx, key, revision)
	}
	return natsconn.WrapError("setting a cell", err)
}

// Watch calls changed with each of names whose cell was ever set, and then after every change of one of the cells, until ctx ends. It
// continues after lost connections, and may repeat a name.
func (c *Cells) Watch(ctx context.Context, names []string, changed func(name string)) {
	cfg := jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, HeadersOnly: true}
	nameOf := make(map[string]string, len(names))
	for _, name := range names {
		nameOf[Prefix+cellKey(name)] = name
	}
	cfg.FilterSubjects = slices.Collect(maps.Keys(nameOf))
	if len(names) == 0 {
		return
	}
	natsread.RestartOnError(ctx, c.bucket.Conn, "cells", func(ctx context.Context) error {
		reader, err := natsread.NewReader(ctx, c.bucket.Conn, c.bucket.Stream, cfg)
		if err != nil {
			return err
		}
		defer reader.Close(ctx)
		for {
			messages, err := reader.Next(ctx, natsread.WatchWait)
			if err != nil {
				return err
			}
			for _, m := range messages {
				changed(nameOf[m.Subject])
			}
		}
	})
}

func cellKey(name string) string { return KeyCell + subjects.EncodeToken(name) }
