package metadata

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"tutti/internal/base/cache"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/metadata/analysis"
	"tutti/internal/store"
)

const (
	// firstChunk and maxChunk are the number of rows read at once, chunkBytes the approximate number of bytes.
	firstChunk = 64
	maxChunk   = 512
	chunkBytes = 4 << 20
)

// lists reads the analyses of studies, page by page.
type lists struct {
	store   *store.Store
	studies *studies
	// states are the indexed ones; now is the clock.
	states  []datamodel.AnalysisState
	now     func() time.Time
	cursors *cursorCache
	// generation counts the changes of analyses in this process.
	generation atomic.Uint64
}

func newLists(s *store.Store, studies *studies, cfg Config) *lists {
	return &lists{store: s, studies: studies, states: cfg.IndexedStates, now: cfg.Now, cursors: newCursorCache(cfg.Now)}
}

// list selects the analyses of a study in some states, in the order of their submission.
type list struct {
	study string
	// states are distinct and sorted; key identifies the study and the states.
	states   []datamodel.AnalysisState
	key      string
	postgres bool
}

func (p *lists) list(study string, states []datamodel.AnalysisState) (list, error) {
	if len(states) == 0 {
		states = p.states
	}
	l := list{study: study, postgres: p.store.Postgres(), states: slices.Compact(slices.Sorted(slices.Values(states)))}
	var key strings.Builder
	for _, s := range l.states {
		if !s.Valid() {
			return list{}, parameterError("a state must be UNPUBLISHED, PUBLISHED or SUPPRESSED")
		}
		key.WriteString(string(s) + " ")
	}
	key.WriteString(study)
	l.key = key.String()
	return l, nil
}

// query returns the statement that reads columns of the rows after a sequence number, in order: at most limit, without the first
// skip.
func (l *list) query(columns string, after int64, limit, skip int) (text string, values []any) {
	of := "SELECT " + columns + " FROM analysis WHERE seq > $1 AND study = $2"
	switch len(l.states) {
	case 1:
		return of + " AND state = $3 ORDER BY seq LIMIT $4 OFFSET $5", []any{after, l.study, string(l.states[0]), limit, skip}
	case 2: // each state's rows come in order from the index and are merged
		one, other := string(l.states[0]), string(l.states[1])
		if !l.postgres {
			return of + " AND state = $3 UNION ALL " + of + " AND state = $4 ORDER BY seq LIMIT $5 OFFSET $6",
				[]any{after, l.study, one, other, limit, skip}
		}
		// Without the inner limits PostgreSQL might sort all rows; with them SQLite would hold all their results.
		return "SELECT * FROM (" + of + " AND state = $3 ORDER BY seq LIMIT $4) AS one UNION ALL SELECT * FROM (" +
				of + " AND state = $5 ORDER BY seq LIMIT $4) AS other ORDER BY seq LIMIT $6 OFFSET $7",
			[]any{after, l.study, one, limit + skip, other, limit, skip}
	default:
		return of + " ORDER BY seq LIMIT $3 OFFSET $4", []any{after, l.study, limit, skip}
	}
}

// count counts the list's rows after a sequence number.
func (p *lists) count(ctx context.Context, l *list, after int64) (int, error) {
	text := "SELECT count(*) FROM analysis WHERE seq > $1 AND study = $2"
	values := []any{after, l.study}
	if len(l.states) < 3 {
		text += " AND state IN (" + placeholders(3, len(l.states)) + ")"
		for _, s := range l.states {
			values = append(values, string(s))
		}
	}
	var n int
	err := p.store.Read().QueryRowContext(ctx, text, values...).Scan(&n)
	return n, store.WrapError("counting the analyses", err)
}

// Page calls each for at most limit analyses of a study in some states, the indexed states when none is named, starting at row
// offset, in the order of submission; limit 0 means all. The Analysis, including its Body, is valid until each returns. An error
// of each ends the page and is returned unchanged. CodeNotFound for an unknown study, CodeInvalid for a bad state, offset or
// limit.
//
// A page that follows another one within half a minute starts after that page's last row, even when earlier rows have left or
// joined the list since, so that no row is missing or repeated between the two. PageInfo.Total is then the length of the list as
// this reader sees it. Offset 0, and any offset where no page ended recently, refers to the current list; when pages of several
// readers ended at one offset, the last one counts. A reader that pages until offset and rows reach the total has seen all rows:
// a page that may be the last is never compared with an outdated count.
func (p *lists) Page(ctx context.Context, study string, states []datamodel.AnalysisState, offset, limit int,
	each func(datamodel.Analysis) error,
) (core.PageInfo, error) {
	l, err := p.list(study, states)
	if err != nil {
		return core.PageInfo{}, err
	}
	if offset < 0 || limit < 0 {
		return core.PageInfo{}, parameterError("the offset and the limit of a page must not be negative")
	}
	if !analysis.Storable(study) {
		return core.PageInfo{}, studyNotFound()
	}
	whole := cursor{countedAt: p.now(), generation: p.generation.Load()} // counts may be as old as the first row
	from, beyond, err := p.find(ctx, &l, offset)
	if err != nil {
		return core.PageInfo{}, err
	}
	if beyond {
		return p.pagePastEnd(ctx, &l)
	}
	rows, last, err := p.forEach(ctx, &l, from.after, limit, each)
	if err == nil && rows == 0 {
		err = p.studies.requireStudy(ctx, p.store.Read(), study)
	}
	if err != nil {
		return core.PageInfo{Rows: rows}, err
	}
	if full := limit > 0 && rows == limit; !full || offset+rows >= from.total || !p.cursors.countValid(&from, whole.generation) {
		behind, err := p.count(ctx, &l, last)
		if err != nil {
			return core.PageInfo{Rows: rows}, err
		}
		whole.total, whole.afterPage = offset+rows+behind, from.afterPage
		if from = whole; !from.afterPage {
			p.cursors.put(cursorKey{l.key, -1}, from)
		}
	}
	if rows > 0 && offset+rows < from.total {
		from.afterPage = true
		from.after = last
		p.cursors.put(cursorKey{l.key, offset + rows}, from)
		from.after = last - 1 // some readers repeat the last row
		p.cursors.put(cursorKey{l.key, offset + rows - 1}, from)
	}
	return core.PageInfo{Rows: rows, Total: from.total}, nil
}

// pagePastEnd returns the empty page at an offset past the end of the list.
func (p *lists) pagePastEnd(ctx context.Context, l *list) (core.PageInfo, error) {
	if err := p.studies.requireStudy(ctx, p.store.Read(), l.study); err != nil {
		return core.PageInfo{}, err
	}
	total, err := p.count(ctx, l, 0)
	return core.PageInfo{Total: total}, err
}

// find returns the cursor of a row offset: a cached one, or that of the current list. beyond is true when the list has no row at
// the offset.
func (p *lists) find(ctx context.Context, l *list, offset int) (found cursor, beyond bool, err error) {
	if offset > 0 {
		if found, ok := p.cursors.get(cursorKey{l.key, offset}); ok {
			return found, false, nil
		}
	}
	whole, _ := p.cursors.get(cursorKey{l.key, -1})
	whole.after = 0
	if offset == 0 {
		return whole, false, nil
	}
	text, values := l.query("seq", 0, 1, offset)
	var first int64
	err = p.store.Read().QueryRowContext(ctx, text, values...).Scan(&first)
	if errors.Is(err, sql.ErrNoRows) {
		return cursor{}, true, nil
	}
	if err != nil {
		return cursor{}, false, store.WrapError("finding a page of analyses", err)
	}
	whole.after = first - 1
	return whole, false, nil
}

// forEach calls each for the rows after a sequence number, at most limit, all for limit 0. Each chunk is read completely before
// each is called: each may take long and must not keep a transaction open. last is the sequence number of the last row.
func (p *lists) forEach(ctx context.Context, l *list, after int64, limit int, each func(datamodel.Analysis) error) (rows int, last int64, err error) {
	if limit == 0 {
		limit = math.MaxInt
	}
	c := chunk{}
	size := firstChunk
	for last = after; rows < limit; {
		ask := min(size, limit-rows)
		if err := c.read(ctx, p.store.Read(), l, last, ask); err != nil {
			return rows, last, err
		}
		for i := range c.rows {
			if err := each(c.analysis(l.study, i)); err != nil {
				return rows, last, err
			}
			rows, last = rows+1, c.rows[i].seq
		}
		if len(c.rows) < ask && !c.cut {
			break
		}
		size = max(1, min(maxChunk, chunkBytes*len(c.rows)/(len(c.bodies)+1)))
	}
	return rows, last, nil
}

// chunk holds some rows of a list in memory. Reading the next chunk reuses its buffers.
type chunk struct {
	rows   []chunkRow
	bodies []byte
	// cut is true when reading stopped at chunkBytes, before the last row.
	cut bool
}

type chunkRow struct {
	seq   int64
	id    string
	state datamodel.AnalysisState
	end   int // end of its body in bodies; the body starts at the end of the previous one
}

// read reads at most limit rows after a sequence number; it stops once they have chunkBytes.
func (c *chunk) read(ctx context.Context, conn store.Conn, l *list, after int64, limit int) error {
	const doing = "reading analyses"
	c.rows, c.bodies, c.cut = c.rows[:0], c.bodies[:0], false
	text, values := l.query("seq, id, state, body", after, limit, 0)
	rows, err := conn.QueryContext(ctx, text, values...)
	if err != nil {
		return store.WrapError(doing, err)
	}
	defer func() { _ = rows.Close() }()
	var body sql.RawBytes
	for rows.Next() {
		var row chunkRow
		if err := rows.Scan(&row.seq, &row.id, &row.state, &body); err != nil {
			return store.WrapError(doing, err)
		}
		c.bodies = append(c.bodies, body...)
		row.end = len(c.bodies)
		c.rows = append(c.rows, row)
		if len(c.bodies) >= chunkBytes {
			c.cut = true
			return nil
		}
	}
	return store.WrapError(doing, rows.Err())
}

func (c *chunk) analysis(study string, i int) datamodel.Analysis {
	row, start := &c.rows[i], 0
	if i > 0 {
		start = c.rows[i-1].end
	}
	return datamodel.Analysis{ID: row.id, Study: study, State: row.state, Body: c.bodies[start:row.end:row.end]}
}

const (
	// maxCursors is the number of cached cursors.
	maxCursors = 4096
	// cursorLife is how long a cursor is cached.
	cursorLife = 30 * time.Second
	// countLife is how long a row count is used: counting for every page would make paging slower the longer the list is.
	countLife = time.Second
)

// cursor is the position of a row offset in a list.
type cursor struct {
	// after is the sequence number that precedes the offset's row.
	after int64
	// total is the number of rows that the list had, as its reader sees it, when they were counted; zero when not counted.
	total     int
	countedAt time.Time
	// generation is the repository's generation at the time of the count.
	generation uint64
	// afterPage is true for a cursor that a page left, false for one of the current list.
	afterPage bool
	storedAt  time.Time
}

// cursorKey identifies a row offset of a list; offset -1 stands for the list itself, for which only the count is cached.
type cursorKey struct {
	list   string
	offset int
}

// cursorCache remembers where recent pages ended, so that the next pages start there: without counting the rows before them, and
// with the row that followed then, whichever rows have left or joined the list since.
type cursorCache struct {
	now    func() time.Time
	recent *cache.LRU[cursorKey, cursor]
}

func newCursorCache(now func() time.Time) *cursorCache {
	return &cursorCache{now: now, recent: cache.NewLRU[cursorKey, cursor](maxCursors)}
}

func (p *cursorCache) get(key cursorKey) (cursor, bool) {
	found, ok := p.recent.Get(key)
	return found, ok && p.now().Sub(found.storedAt) < cursorLife
}

func (p *cursorCache) put(key cursorKey, found cursor) {
	found.storedAt = p.now()
	p.recent.Put(key, found, 1)
}

// countValid reports whether the cursor's count can still be used. A count of the current list is invalid after this process
// changed an analysis: a client sees its own changes.
func (p *cursorCache) countValid(found *cursor, generation uint64) bool {
	return found.total > 0 && p.now().Sub(found.countedAt) < countLife && (found.afterPage || found.generation == generation)
}
