package deadletter

import (
	"context"
	"strconv"

	"golang.org/x/sync/errgroup"

	"tutti/internal/core"
	"tutti/internal/queue/natsconn"
	"tutti/internal/queue/paging"
	"tutti/internal/queue/subjects"
)

// readParallel is how many dead letters of a page are read concurrently: each may have a document of core.MaxDeadLetterBytes.
const readParallel = 2

// EachPage calls each with pages of f.Limit of the dead letters that f selects and that exist now, in every process, the last written
// first. They have what their retry needs (core.DeadLetter.RecordRequest): those of records may lack the rest, none has its document, and
// one that cannot be decoded has only its ID. f.Cursor is that of an earlier call, empty for all; next is the one after the page. page
// lacks those that were removed or written again since; count includes them, and left is the number of those after the page. The cost is linear: the dead letters are listed once, and memory holds 8 bytes for each. It returns the error of each; CodeInvalid for an invalid cursor.
func (d *Store) EachPage(
	ctx context.Context, f core.DeadLetterFilter, each func(page []core.DeadLetter, count, left int, next string) error,
) error {
	cursor, err := parseCursor(f.Cursor)
	if err != nil {
		return err
	}
	if err := d.awaitCurrent(ctx); err != nil {
		return err
	}
	sequences := d.index.sequences(f, cursor)
	for len(sequences) > 0 {
		n := min(f.Limit, len(sequences))
		page, err := d.read(ctx, d.index.at(sequences[:n]), f.Reason)
		if err != nil {
			return err
		}
		next := paging.EncodeCursor(listCursor, strconv.FormatUint(sequences[n-1], 36))
		sequences = sequences[n:]
		if err := each(page, n, len(sequences), next); err != nil {
			return err
		}
	}
	return nil
}

// awaitCurrent blocks until the index shows every dead letter that any process has stored, or has not for indexWait.
func (d *Store) awaitCurrent(ctx context.Context) error {
	last, err := d.stream.GetLastMsgForSubject(ctx, subjects.DeadPrefix+">")
	switch {
	case natsconn.IsNotFound(err):
		return nil
	case err != nil:
		return natsconn.WrapError("reading the last dead letter", err)
	}
	if !d.index.await(ctx, last.Sequence, indexWait) {
		return core.NewError(core.CodeUnavailable, "the list of dead letters is behind the queue")
	}
	return nil
}

// read returns the dead letters of entries that are still there and have a reason (empty for any). Those of records whose names are enough
// are not read: their documents are large, and the server keeps the blocks of messages around them in memory.
func (d *Store) read(ctx context.Context, entries []entry, reason string) ([]core.DeadLetter, error) {
	read := make([]*core.DeadLetter, len(entries))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readParallel)
	for i, e := range entries {
		if names, ok := fromSubject(e.subject); ok && e.named {
			names.Reason, names.Version = e.kind.reason, e.version
			read[i] = &names
			continue
		}
		group.Go(func() error {
			l, _, err := d.last(ctx, e.subject)
			switch {
			case natsconn.IsNotFound(err) || err == nil && reason != "" && l.Reason != reason:
				return nil
			case core.CodeOf(err) == core.CodeInternal:
				l = core.DeadLetter{ID: idOf(e.subject)}
			case err != nil:
				return natsconn.WrapError("reading a dead letter", err)
			}
			l.Document = nil
			read[i] = &l
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	page := make([]core.DeadLetter, 0, len(read))
	for _, l := range read {
		if l != nil {
			page = append(page, *l)
		}
	}
	return page, nil
}
