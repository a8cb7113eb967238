package consumers

import (
	"context"
	"encoding/base64"

	"tutti/internal/core"
)

// Values of the cell that FillCell names.
const (
	// FillDue says that the index was empty when it was first prepared and that no run has filled it yet.
	FillDue = "due"
	// FillDone says that the index held documents of the repository when it was first prepared, or was filled since.
	FillDone = "done"
)

// FillCell returns the name of the compare-and-swap cell that says whether a repository's index has to be filled by a run.
// The consumers set it before their first write to the index; who sees the run end sets it to FillDone.
func FillCell(code, indexName string) string { return indexCell("fill", code, indexName) }

// indexCell returns the name of a cell about a repository's index.
func indexCell(kind, code, indexName string) string {
	enc := base64.RawURLEncoding
	return kind + "." + enc.EncodeToString([]byte(code)) + "." + enc.EncodeToString([]byte(indexName))
}

// initFillCell sets the repository's FillCell unless it is set. The index takes no writes of the repository before that, so that
// its first documents do not make an index look filled.
func (r *repository) initFillCell(ctx context.Context) error {
	name := FillCell(r.Code, r.IndexName)
	value, revision, err := r.c.deps.Slots.Slot(ctx, name)
	if err != nil || value != "" {
		return err
	}
	n, err := r.c.deps.Index.Count(ctx, r.IndexName, core.IndexScope{Repository: r.Code})
	if err != nil {
		return err
	}
	value = FillDue
	if n > 0 {
		value = FillDone
	}
	err = r.c.deps.Slots.SetSlot(ctx, name, value, revision)
	if core.CodeOf(err) == core.CodeConflict { // another process set it
		return nil
	}
	return err
}
