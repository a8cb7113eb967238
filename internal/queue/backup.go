package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/core"
	"tutti/internal/queue/cells"
	"tutti/internal/queue/deadletter"
	"tutti/internal/queue/natsconn"
)

// Backup calls add for each stream, with a function that writes its messages. The stream of Requests comes first: a Request that is no
// longer in it when it is read has been followed by others, which are read, or by a dead letter, a change of a job or a document, which
// therefore must be read afterwards.
func (q *Queue) Backup(ctx context.Context, add func(stream string, write func(io.Writer) error) error) error {
	for _, name := range []string{streamRequests, cells.StreamName, deadletter.StreamName, streamSeen} {
		s, err := q.conn.JS.Stream(ctx, name)
		if err != nil {
			return natsconn.WrapError("reading the queue", err)
		}
		if err := add(name, func(w io.Writer) error { return q.conn.Snapshot(ctx, s, w) }); err != nil {
			return err
		}
	}
	return nil
}

// Restore creates the streams of an in-process server that has none, from what Backup wrote. It calls read for each stream, which
// calls its argument with the stream's content, or not at all for an empty stream.
func Restore(
	ctx context.Context, server natsconn.InProcessServer, cfg Config, read func(stream string, restore func(io.Reader) error) error,
) error {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return err
	}
	conn, err := natsconn.Dial(ctx, natsconn.ConnConfig{Server: server, StartTimeout: cfg.StartTimeout, Logger: cfg.Logger})
	if err != nil {
		return err
	}
	for _, s := range cfg.streamConfigs() {
		if err = read(s.Name, func(r io.Reader) error { return conn.Restore(ctx, s, r) }); err != nil {
			break
		}
	}
	return errors.Join(err, conn.Disconnect(context.WithoutCancel(ctx)))
}

// Cells of a move.
const (
	// cellMoveID is set on the servers that messages are copied from: an id of these streams.
	cellMoveID = "move_id"
	// cellMovedFrom is set on those that they are copied to: the id of the streams that they came from.
	cellMovedFrom = "moved_from"
	// cellMoving is set, from before the first copy until the last one, on the servers that are used after a move: the parts that are
	// moved, separated by commas.
	cellMoving = "moving"
)

// Moving returns the parts whose move to other servers has begun and not ended.
func (q *Queue) Moving(ctx context.Context) ([]string, error) {
	parts, _, err := q.Cells().Cell(ctx, cellMoving)
	if err != nil || parts == "" {
		return nil, err
	}
	return strings.Split(parts, ","), nil
}

// SetMoving records which parts are moved; none when the move has ended.
func (q *Queue) SetMoving(ctx context.Context, parts ...string) error {
	_, revision, err := q.Cells().Cell(ctx, cellMoving)
	if err != nil {
		return err
	}
	return q.Cells().SetCell(ctx, cellMoving, strings.Join(parts, ","), revision)
}

// PrepareCopy prepares the streams of other servers, in which nothing was stored yet, for the copies of CopyTo. It removes the copies of a
// move that did not end, of which the source may have processed some since. CodeConflict when the other streams have messages that
// are not from here.
func (q *Queue) PrepareCopy(ctx context.Context, to *Queue) error {
	id, revision, err := q.Cells().Cell(ctx, cellMoveID)
	if err == nil && id == "" {
		id = rand.Text()
		err = q.Cells().SetCell(ctx, cellMoveID, id, revision)
	}
	if err != nil {
		return err
	}
	if err := to.acceptFrom(ctx, id); err != nil {
		return err
	}
	if parts, err := to.Moving(ctx); err != nil || len(parts) == 0 {
		return err
	}
	for _, cfg := range to.cfg.streamConfigs() {
		if cfg.Name == cells.StreamName {
			continue // has the cells of the move
		}
		s, err := to.conn.JS.Stream(ctx, cfg.Name)
		if err == nil {
			err = s.Purge(ctx)
		}
		if err != nil {
			return natsconn.WrapError("removing the copies of an interrupted move", err)
		}
	}
	return nil
}

// CopyTo copies all messages to the streams that PrepareCopy has prepared, and returns their number. After an error both can be
// repeated: a message that is copied again replaces its copy. Nothing may work on either queue until it returns.
func (q *Queue) CopyTo(ctx context.Context, to *Queue) (messages int, err error) {
	for _, cfg := range q.cfg.streamConfigs() {
		s, err := q.conn.JS.Stream(ctx, cfg.Name)
		if err != nil {
			return messages, natsconn.WrapError("reading the queue", err)
		}
		n, err := q.conn.CopyTo(ctx, s, to.conn)
		messages += n
		if err != nil {
			return messages, err
		}
	}
	return messages, nil
}

// acceptFrom records that the streams get the messages of those with an id. CodeConflict when they have others.
func (q *Queue) acceptFrom(ctx context.Context, id string) error {
	from, revision, err := q.Cells().Cell(ctx, cellMovedFrom)
	if err != nil || from == id {
		return err
	}
	for _, cfg := range q.cfg.streamConfigs() {
		s, err := q.conn.JS.Stream(ctx, cfg.Name)
		if err == nil {
			var info *jetstream.StreamInfo
			if info, err = s.Info(ctx, jetstream.WithSubjectFilter(cfg.Subjects[0])); err == nil && len(info.State.Subjects) > 0 {
				return &core.Error{
					Code: core.CodeConflict, Message: fmt.Sprintf("the stream %s of the other queue has %d messages already", cfg.Name, len(info.State.Subjects)),
					Hint: "name servers in queue.url on which no tutti was started yet, or delete the streams of tutti there",
				}
			}
		}
		if err != nil {
			return natsconn.WrapError("reading the other queue", err)
		}
	}
	return q.Cells().SetCell(ctx, cellMovedFrom, id, revision)
}

// cellRunAll names the compare-and-swap cell that is set while a run of every repository is due.
const cellRunAll = "run_all"

// RunAll is which run of every repository is due.
type RunAll string

// The runs that can be due.
const (
	RunAllNone RunAll = ""
	// RunAllDifference compares the records with the index, RunAllRecords indexes them all.
	RunAllDifference RunAll = "difference"
	RunAllRecords    RunAll = "due"
)

// RequestRunAll records that a run of every repository is due. A run of the difference does not replace the other.
func (q *Queue) RequestRunAll(ctx context.Context, run RunAll) error {
	for {
		due, revision, err := q.Cells().Cell(ctx, cellRunAll)
		if err == nil && RunAll(due) != RunAllRecords {
			err = q.Cells().SetCell(ctx, cellRunAll, string(run), revision)
		}
		if core.CodeOf(err) != core.CodeConflict {
			return err
		}
	}
}

// RunAllDue returns which run of every repository is due, and a function that records that all were queued.
func (q *Queue) RunAllDue(ctx context.Context) (due RunAll, done func() error, err error) {
	value, revision, err := q.Cells().Cell(ctx, cellRunAll)
	if err != nil || value == "" {
		return RunAllNone, nil, err
	}
	return RunAll(value), func() error { return q.Cells().SetCell(ctx, cellRunAll, "", revision) }, nil
}
