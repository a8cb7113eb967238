package metadata

import (
	"context"
	"database/sql"

	"tutti/internal/core"
	"tutti/internal/store"
)

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
	state core.AnalysisState
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

func (c *chunk) analysis(study string, i int) core.Analysis {
	row, start := &c.rows[i], 0
	if i > 0 {
		start = c.rows[i-1].end
	}
	return core.Analysis{ID: row.id, Study: study, State: row.state, Body: c.bodies[start:row.end:row.end]}
}
