package rebuild

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"tutti/internal/core"
	"tutti/internal/index"
)

// Cells are named compare-and-set cells that all processes share. Cell returns the value as last set by any of them.
type Cells interface {
	Cell(ctx context.Context, name string) (value string, revision uint64, err error)
	SetCell(ctx context.Context, name, value string, revision uint64) error
}

// Steps of a rebuild.
const (
	// stepFilling is set while the index is filled, and writes are mirrored.
	stepFilling = "filling"
	// stepMoving is set before the alias is moved: from then on the rebuild is completed, even if its job is cancelled.
	stepMoving = "moving"
	// stepMoved is set once the alias stands for the filled index.
	stepMoved = "moved"
)

// state is the state of the last rebuild of an alias, zero for none.
type state struct{ step, jobID, identity string }

func cellOf(alias string) string {
	return "rebuild." + base64.RawURLEncoding.EncodeToString([]byte(alias))
}

func readState(ctx context.Context, cells Cells, alias string) (state, uint64, error) {
	value, revision, err := cells.Cell(ctx, cellOf(alias))
	if err != nil || value == "" {
		return state{}, revision, err
	}
	step, rest, _ := strings.Cut(value, " ")
	jobID, identity, _ := strings.Cut(rest, " ")
	return state{step, jobID, identity}, revision, nil
}

// Rebuild rebuilds the index of one repository. It is safe for concurrent use.
type Rebuild struct {
	index index.Index
	cells Cells
	spec  index.Spec
	// identityCell names the cell with the identity of the index that the repository writes to.
	identityCell string
	// mapping returns the content of the mapping file, nil for none.
	mapping func() (json.RawMessage, error)
}

// New returns the Rebuild of the index of spec. identityCell names the cell with the identity of the index that was last prepared, which
// Finish sets. mapping replaces the Mapping of spec: a rebuild uses the mapping file as it is then.
func New(x index.Index, cells Cells, spec index.Spec, identityCell string, mapping func() (json.RawMessage, error)) *Rebuild {
	return &Rebuild{index: x, cells: cells, spec: spec, identityCell: identityCell, mapping: mapping}
}

// target returns the spec of the index to be filled.
func (r *Rebuild) target() (index.Spec, error) {
	spec := r.spec
	var err error
	if spec.Mapping, err = r.mapping(); err != nil {
		return spec, err
	}
	spec.Alias, spec.Replaces, spec.Identity = core.NextAlias(r.spec.Alias), r.spec.Alias, ""
	return spec, nil
}

// Begin creates the index to be filled by a job, and makes writes of all processes go to it too. Doing so again has no effect. What an
// earlier job left behind is deleted. CodeConflict when the index of this job was deleted since, or when a template of the cluster
// prevents the rebuild; CodeInvalid when the mapping file cannot be read.
func (r *Rebuild) Begin(ctx context.Context, jobID string) error {
	for {
		s, revision, err := readState(ctx, r.cells, r.spec.Alias)
		if err != nil {
			return err
		}
		if s.jobID == jobID {
			return r.check(ctx, s)
		}
		spec, err := r.target()
		if err != nil {
			return err
		}
		if err := r.index.Drop(ctx, spec.Alias, ""); err != nil {
			return err
		}
		if err := r.index.Ensure(ctx, spec); err != nil {
			return err
		}
		identity, err := r.index.Identity(ctx, spec.Alias)
		if err != nil {
			return err
		}
		err = r.set(ctx, state{stepFilling, jobID, identity}, revision)
		if core.CodeOf(err) != core.CodeConflict { // otherwise another process has discarded an earlier rebuild, or rolled one back
			return err
		}
	}
}

func (r *Rebuild) set(ctx context.Context, s state, revision uint64) error {
	value := ""
	if s != (state{}) {
		value = s.step + " " + s.jobID + " " + s.identity
	}
	return r.cells.SetCell(ctx, cellOf(r.spec.Alias), value, revision)
}

// Check returns CodeConflict when the index that a job fills does not exist any more.
func (r *Rebuild) Check(ctx context.Context, jobID string) error {
	s, _, err := readState(ctx, r.cells, r.spec.Alias)
	if err != nil {
		return err
	}
	if s.jobID != jobID {
		return errDeleted()
	}
	return r.check(ctx, s)
}

func (r *Rebuild) check(ctx context.Context, s state) error {
	if s.step == stepMoved {
		return nil
	}
	identity, err := r.index.Identity(ctx, core.NextAlias(r.spec.Alias))
	if errors.Is(err, core.ErrIndexMissing) {
		if moved, err := r.moved(ctx, s); moved || err != nil {
			return err
		}
		return errDeleted()
	}
	if err == nil && identity != s.identity {
		return errDeleted()
	}
	return err
}

// moved reports whether the alias stands for the filled index.
func (r *Rebuild) moved(ctx context.Context, s state) (bool, error) {
	identity, err := r.index.Identity(ctx, r.spec.Alias)
	return err == nil && identity == s.identity && identity != "", err
}

func errDeleted() error {
	return &core.Error{
		Code: core.CodeConflict, Message: "the index that was being filled was deleted", Hint: "start the rebuild again",
	}
}

// Finish moves the alias to the index that a job has filled. Doing so again has no effect, also in another process at the same time.
// CodeConflict when the index was deleted.
func (r *Rebuild) Finish(ctx context.Context, jobID string) error {
	for {
		s, revision, err := readState(ctx, r.cells, r.spec.Alias)
		if err != nil {
			return err
		}
		if s.jobID != jobID {
			return errDeleted()
		}
		if s.step == stepMoved {
			return nil
		}
		if err := r.check(ctx, s); err != nil {
			return err
		}
		if s.step == stepFilling {
			s.step = stepMoving
			err := r.set(ctx, s, revision)
			if core.CodeOf(err) == core.CodeConflict {
				continue
			}
			if err != nil {
				return err
			}
		}
		return r.complete(ctx)
	}
}

// complete moves the alias, unless that is done, and records it. If the filled index was deleted before, it ends the rebuild instead.
func (r *Rebuild) complete(ctx context.Context) error {
	s, revision, err := readState(ctx, r.cells, r.spec.Alias)
	if err != nil || s.step != stepMoving {
		return err
	}
	moved, err := r.moved(ctx, s)
	if err == nil && !moved {
		// The other processes must not take it for an index that was replaced without tutti, and fill it again.
		if err = r.setIdentity(ctx, s.identity); err == nil {
			err = r.move(ctx, core.NextAlias(r.spec.Alias))
		}
		if err != nil {
			if moved, _ := r.moved(ctx, s); moved { // by another process
				err = nil
			} else if _, gone := r.index.Identity(ctx, core.NextAlias(r.spec.Alias)); errors.Is(gone, core.ErrIndexMissing) {
				return r.set(ctx, state{}, revision)
			}
		}
	}
	if err != nil {
		return err
	}
	s.step = stepMoved
	if err := r.set(ctx, s, revision); core.CodeOf(err) != core.CodeConflict { // otherwise another process has recorded it
		return err
	}
	return nil
}

// move moves the alias to the index behind from.
func (r *Rebuild) move(ctx context.Context, from string) error {
	if err := r.index.Refresh(ctx, from); err != nil {
		return err
	}
	spec := r.spec
	if mapping, err := r.mapping(); err == nil { // the index is filled: a file that was damaged since does not matter
		spec.Mapping = mapping
	}
	return r.index.Swap(ctx, spec, from)
}

// setIdentity makes the other processes take an index for the one that the repository was last written to.
func (r *Rebuild) setIdentity(ctx context.Context, identity string) error {
	for {
		before, revision, err := r.cells.Cell(ctx, r.identityCell)
		if err != nil || identity == "" || before == identity {
			return err
		}
		if err := r.cells.SetCell(ctx, r.identityCell, identity, revision); core.CodeOf(err) != core.CodeConflict {
			return err
		}
	}
}

// Rollback moves the alias back to the index that it had before the last rebuild, which then is the one before. That index has not
// been written to since, so that queueRun must queue a run. Until it has, the cell of the identity names the other index: should the
// process end, or the queue take no run, the next check of the index finds it replaced and queues the run. CodeNotFound when there is no
// index to roll back to, CodeConflict while a rebuild runs.
func (r *Rebuild) Rollback(ctx context.Context, queueRun func() error) error {
	s, revision, err := readState(ctx, r.cells, r.spec.Alias)
	if err != nil {
		return err
	}
	if s.step == stepFilling || s.step == stepMoving {
		return &core.Error{Code: core.CodeConflict, Message: "the index is being rebuilt", Hint: "cancel the job of the rebuild, or wait for its end"}
	}
	previous := core.PreviousAlias(r.spec.Alias)
	identity, err := r.previous(ctx)
	if err != nil {
		return err
	}
	err = r.set(ctx, state{stepMoved, "rollback", identity}, revision) // a rebuild that begins now begins again
	if core.CodeOf(err) == core.CodeConflict {
		return &core.Error{Code: core.CodeConflict, Message: "another process is changing the index", Hint: "look at its jobs, then try again", Err: err}
	}
	if err == nil {
		err = r.move(ctx, previous)
	}
	if err != nil {
		return err
	}
	if err := queueRun(); err != nil {
		return core.WrapError(core.CodeOf(err), "the index was rolled back, and its run is queued later (a second rollback would undo this one)", err)
	}
	return r.setIdentity(ctx, identity)
}

// DropPrevious deletes the index that the alias had before the last rebuild. CodeNotFound when there is none.
func (r *Rebuild) DropPrevious(ctx context.Context) error {
	if _, err := r.previous(ctx); err != nil {
		return err
	}
	return r.index.Drop(ctx, core.PreviousAlias(r.spec.Alias), "")
}

// previous returns the identity of the index before the last rebuild.
func (r *Rebuild) previous(ctx context.Context) (string, error) {
	identity, err := r.index.Identity(ctx, core.PreviousAlias(r.spec.Alias))
	if errors.Is(err, core.ErrIndexMissing) {
		return "", core.NewError(core.CodeNotFound, "no index from before a rebuild is kept")
	}
	return identity, err
}

// Discard deletes the index that a job did not finish to fill, and ends the mirroring of writes to it. It does nothing to other jobs'.
func (r *Rebuild) Discard(ctx context.Context, jobID string) error {
	return r.DiscardEnded(ctx, func(_ context.Context, id string) (bool, error) { return id == jobID, nil })
}

// DiscardEnded is Discard for a job that has ended, such as a cancelled one.
func (r *Rebuild) DiscardEnded(ctx context.Context, ended func(ctx context.Context, jobID string) (bool, error)) error {
	s, revision, err := readState(ctx, r.cells, r.spec.Alias)
	if err != nil || s.step != stepFilling && s.step != stepMoving {
		return err
	}
	if is, err := ended(ctx, s.jobID); err != nil || !is {
		return err
	}
	if s.step == stepMoving {
		return r.complete(ctx)
	}
	if err := r.set(ctx, state{}, revision); err != nil {
		return err
	}
	return r.index.Drop(ctx, core.NextAlias(r.spec.Alias), s.identity) // the alias may be that of the next rebuild already
}
