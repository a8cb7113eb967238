package lyric

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"tutti/internal/core"
	"tutti/internal/upstream"
)

// centralFor is how long the central entity of a category is assumed to stay the same.
const centralFor = time.Minute

// centralEntity is the central entity of a category. Lyric does not return it, but the compound view of a category lists only its
// records, while a category without one lists the records of all entities, in the order of their names.
type centralEntity struct {
	calls *semaphore.Weighted // held during the calls to the upstream, for which no caller may hold memory
	mu    sync.Mutex          // guards what follows
	fixed bool                // name is the configured entity
	asked time.Time           // zero if the list was empty
	name  string              // "" for none
	// proven is set if another entity had a record that the list did not have: until then the category may have no central entity,
	// but only records of the entity name.
	proven bool
}

// known returns the central entity as centralOf does, without a call; listed is false if one is needed.
func (e *centralEntity) known(other string) (name string, listed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.name, e.covers(other)
}

// covers reports whether what is known of the category holds for an existing record of an entity, or "".
func (e *centralEntity) covers(other string) bool {
	return e.fixed || time.Since(e.asked) < centralFor && (e.proven || other == "" || e.name == "" || e.name == other)
}

// centralOf returns the central entity, "" for none. listed is false while the list is empty. other is the entity of an existing
// record, or "".
func (c *Client) centralOf(ctx context.Context, other string) (name string, listed bool, err error) {
	known := &c.central
	if err := known.calls.Acquire(ctx, 1); err != nil {
		return "", false, err
	}
	defer known.calls.Release(1)
	if name, listed = known.known(other); listed {
		return name, true, nil
	}
	asked := time.Now()
	first, total, err := c.listedEntity(ctx, 1)
	if err != nil || total == 0 {
		return "", false, err
	}
	last := first
	if total > 1 {
		if last, total, err = c.listedEntity(ctx, total); err == nil && total == 0 {
			err = core.NewError(core.CodeUnavailable, "the upstream's list became shorter while it was read")
		}
		if err != nil {
			return "", false, err
		}
	}
	if first != last {
		first = ""
	}
	known.mu.Lock()
	defer known.mu.Unlock()
	known.asked, known.name, known.proven = asked, first, first != "" && other != "" && first != other
	return first, true, nil
}

// listedEntity returns the entity of one row of the category's list, counted from 1, and the number of rows; 0 if there is no such row.
func (c *Client) listedEntity(ctx context.Context, row int) (entity string, total int, err error) {
	call := pageRequest{offset: row - 1, number: row, size: 1}
	r := upstream.Request{Query: call.query(), Segments: []string{"data", "category", c.category}, Error: pageError}
	info, err := c.calls.Page(ctx, r, func(item upstream.Item) (core.Record, error) {
		entity = string(item.Values[memberEntity])
		return core.Record{}, nil
	}, call.info, func(core.Record) error { return nil })
	if errors.Is(err, errNoRows) {
		return "", 0, nil
	}
	if err == nil && entity == "" {
		err = upstream.FormatError("record")
	}
	return entity, info.Total, err
}
