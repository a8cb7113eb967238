package run

import (
	"context"

	"github.com/cespare/xxhash/v2"

	"tutti/internal/core"
)

// noteInvalid stores which records the page shows as not to be indexed, and settles them: it decides as it was first read completely.
func (w *pageWork) noteInvalid(ctx context.Context, pass *pagePass) error {
	w.notValid = make([]uint64, 0, len(pass.notValid))
	for _, id := range pass.notValid {
		w.notValid = append(w.notValid, xxhash.Sum64String(id))
		w.settleID(id)
	}
	if w.member != nil || len(w.notValid) == 0 && w.page.Epoch == 0 { // nothing was noted for the page before
		return nil
	}
	return w.storeNotValid(ctx)
}

func (w *pageWork) storeNotValid(ctx context.Context) error {
	return w.loop.RetryUntilStopped(ctx, "storing the ids of invalid records", func() error {
		return w.Pages.NoteInvalid(ctx, w.job.ID, w.req.Organization, w.reread, w.page.Number, w.notValid)
	})
}

// reportInvalid records that the page showed records as not to be indexed.
func (w *pageWork) reportInvalid(run *core.OrganizationRun) {
	if len(w.notValid) > 0 {
		run.Invalid = true
	}
}

// noteHeld stores what the group would have stored of a page, once its organization leaves the group.
func (w *pageWork) noteHeld(ctx context.Context) error {
	if err := w.notePage(ctx, w.hashes); err != nil || len(w.notValid) == 0 {
		return err
	}
	return w.storeNotValid(ctx)
}
