package outcome

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"tutti/internal/core"
)

// SettleBlocks processes what the result of a write to a shared index says about the record of each repository: a record in conflict
// becomes a dead letter, the dead letter of one that no longer is is removed, and the record that the document must be made of is
// requested. req's record was settled under organization; id is that of the document. The message must not end before it succeeds.
func (o *Outcomes) SettleBlocks(ctx context.Context, req core.Request, organization, id string, res core.Result) error {
	if o.cfg.Publish == nil || res.Shared == nil {
		return nil
	}
	conflict := false
	for _, b := range res.Shared.Blocks {
		if b.Repository == o.code {
			conflict = b.Conflict
			organization = b.Organization
		}
		if err := o.settleBlock(ctx, req, id, b, res.Shared.Blocks); err != nil {
			return err
		}
	}
	if req.Organization != organization { // the record has moved
		if err := o.clearConflict(ctx, o.code, req.Organization, id); err != nil {
			return err
		}
	}
	if conflict {
		return nil
	}
	return o.clearConflict(ctx, o.code, organization, id)
}

func (o *Outcomes) settleBlock(ctx context.Context, req core.Request, id string, b core.SharedBlock, all []core.SharedBlock) error {
	if b.Repository != o.code {
		req = core.Request{
			ID: uuid.Must(uuid.NewV7()).String(), Kind: core.KindIndex, Scope: core.ScopeRecord, Repository: b.Repository,
			Organization: b.Organization, RecordID: b.RecordID, Cause: core.CauseReconcile, ReceivedAt: time.Now().UTC(),
		}
	}
	if b.Fetch {
		o.log.Info("the record of another repository takes over a document", "repository", b.Repository, "organization", b.Organization,
			"record_id", Truncate(b.RecordID, maxIDBytes))
		if err := o.cfg.Publish(ctx, req); err != nil {
			return err
		}
	}
	switch {
	case !b.Conflict && b.Repository != o.code:
		return o.clearConflict(ctx, b.Repository, b.Organization, id)
	case !b.Conflict, b.Repository != o.code && o.deadLetters.Has(b.Repository, b.Organization, id):
		return nil
	}
	var winners []string
	for _, other := range all {
		if !other.Conflict {
			winners = append(winners, other.Repository)
		}
	}
	letter := core.DeadLetter{
		Repository: b.Repository, Organization: b.Organization, RecordID: id, Reason: core.ReasonConflict,
		Hint: fmt.Sprintf("the document is made of the newer record of %s, which shares the index %s and differs: make the records the same or remove "+
			"one, then retry", strings.Join(winners, ", "), o.indexName),
	}
	if kept := b.Document; kept != nil {
		letter.Document, letter.Size, letter.SHA256, letter.Truncated = kept.Bytes, kept.Size, kept.SHA256, kept.Truncated
	}
	return o.StoreDeadLetter(ctx, req, letter)
}

// isConflict reports whether a record has a dead letter of a conflict.
func (o *Outcomes) isConflict(ctx context.Context, code, organization, id string) (bool, error) {
	letter, err := o.deadLetters.Find(ctx, code, organization, id)
	if core.CodeOf(err) == core.CodeNotFound {
		return false, nil
	}
	return letter.Reason == core.ReasonConflict, err
}

// clearConflict removes the dead letter of a conflict, if there is one.
func (o *Outcomes) clearConflict(ctx context.Context, code, organization, id string) error {
	if !o.deadLetters.Has(code, organization, id) {
		return nil
	}
	is, err := o.isConflict(ctx, code, organization, id)
	if !is || err != nil {
		return err
	}
	return o.deadLetters.Clear(ctx, code, organization, id)
}
