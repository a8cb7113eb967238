package consumers

import (
	"context"
	"encoding/base64"

	"tutti/consumers/run"
	"tutti/internal/core"
)

// Values of the cell that FillCell names.
const (
	// FillDue means that the index was empty when it was first prepared and that no run has filled it yet.
	FillDue = "due"
	// FillDone means that the index held documents of the repository when it was first prepared, or was filled since.
	FillDone = run.FillDone
)

// FillCell returns the name of the compare-and-swap cell that says whether a run has to fill a repository's index. The
// consumers set it before their first write to the index, and to FillDone before the end of a job that has filled it.
func FillCell(code, indexName string) string { return indexCell("fill", code, indexName) }

// IdentityCell returns the name of the compare-and-swap cell that holds the identity of the index that a repository was last written to.
func IdentityCell(code, indexName string) string { return indexCell("index", code, indexName) }

// indexCell returns the name of a cell about a repository's index.
func indexCell(kind, code, indexName string) string {
	enc := base64.RawURLEncoding
	return kind + "." + enc.EncodeToString([]byte(code)) + "." + enc.EncodeToString([]byte(indexName))
}

// initFillCell sets the repository's FillCell unless it is set. It must precede the repository's first write to the index:
// its first documents must not make the index look filled.
func (w *indexWatch) initFillCell(ctx context.Context) error {
	name := FillCell(w.Code, w.IndexName)
	value, revision, err := w.cells.Cell(ctx, name)
	if err != nil || value != "" {
		return err
	}
	n, err := w.index.Count(ctx, w.IndexName, core.IndexScope{Repository: w.Code})
	if err != nil {
		return err
	}
	value = FillDue
	if n > 0 {
		value = FillDone
	}
	err = w.cells.SetCell(ctx, name, value, revision)
	if core.CodeOf(err) == core.CodeConflict { // another process set it
		return nil
	}
	return err
}
