package rebuild

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
)

// Steps of a rebuild.
const (
	// stepBeginning is set before the index is created: identity is that of what an earlier job left behind.
	stepBeginning = "beginning"
	// stepFilling is set while the index is filled, and writes are mirrored.
	stepFilling = "filling"
	// stepLost is set when the index that is filled took no write that the index of the alias took: it lacks a change, so that the rebuild
	// fails. Writes are not mirrored any more.
	stepLost = "lost"
	// stepMoving is set before the alias is moved: from then on the rebuild is completed, even if its job is cancelled.
	stepMoving = "moving"
	// stepMoved is set once the alias stands for the index with the identity: that of a rebuild, or the one before after a rollback.
	stepMoved = "moved"
	// stepRollingBack is set before the alias is moved to the index before the last rebuild.
	stepRollingBack = "rolling-back"
	// stepDropping is set before that index is deleted.
	stepDropping = "dropping"
)

// state is the state of the last rebuild of an alias, zero for none.
type state struct{ step, jobID, identity string }

// replacing reports whether a rebuild is in progress.
func (s state) replacing() bool {
	switch s.step {
	case stepBeginning, stepFilling, stepLost, stepMoving:
		return true
	default:
		return false
	}
}

// CellOf returns the name of the cell with the state of the rebuild of an alias. Its last change follows the move of the alias.
func CellOf(alias string) string {
	return "rebuild." + base64.RawURLEncoding.EncodeToString([]byte(alias))
}

func readState(ctx context.Context, cells core.Cells, alias string) (state, uint64, error) {
	value, revision, err := cells.Cell(ctx, CellOf(alias))
	if err != nil || value == "" {
		return state{}, revision, err
	}
	step, rest, _ := strings.Cut(value, " ")
	jobID, identity, _ := strings.Cut(rest, " ")
	return state{step, jobID, identity}, revision, nil
}

func writeState(ctx context.Context, cells core.Cells, alias string, s state, revision uint64) error {
	value := ""
	if s != (state{}) {
		value = s.step + " " + s.jobID + " " + s.identity
	}
	return cells.SetCell(ctx, CellOf(alias), value, revision)
}

// Rebuild rebuilds the index of one repository. It is safe for concurrent use.
type Rebuild struct {
	index index.Index
	cells core.Cells
	spec  index.Spec
	// identityCell names the cell with the identity of the index that the repository writes to.
	identityCell string
	// mapping returns the content of the mapping file, nil for none.
	mapping func() (json.RawMessage, error)
	// declared returns the types that the repository declares, limits bound what an index is made with.
	declared func() *mapping.Types
	limits   mapping.Limits
}

// New returns the Rebuild of the index of spec. identityCell names the cell with the identity of the index that was last prepared, which
// Finish sets. file replaces the Mapping of spec: a rebuild uses the mapping file as it is then.
func New(x index.Index, cells core.Cells, spec index.Spec, identityCell string, file func() (json.RawMessage, error)) *Rebuild {
	return &Rebuild{
		index: x, cells: cells, spec: spec, identityCell: identityCell, mapping: file,
		declared: func() *mapping.Types { return nil }, limits: mapping.DefaultLimits(),
	}
}

// Use sets what returns the types that the repository declares, none by default, and the limits of an index, by default those of
// mapping.DefaultLimits. It must be called before the first rebuild.
func (r *Rebuild) Use(declared func() *mapping.Types, limits mapping.Limits) {
	r.declared, r.limits = declared, limits
}

// target returns the spec of the index to be filled.
func (r *Rebuild) target(ctx context.Context, counts Counts) (index.Spec, error) {
	spec := r.spec
	var err error
	if spec.Mapping, err = r.mapping(); err != nil {
		return spec, err
	}
	if counts != nil {
		err = r.decide(ctx, &spec, counts)
	}
	spec.Alias, spec.Replaces, spec.Identity = core.NextAlias(r.spec.Alias), r.spec.Alias, ""
	return spec, err
}

// Begin creates the index to be filled by a job, and makes writes of all processes go to it too. Doing so again has no effect, also in
// another process at the same time. What an earlier job left behind is deleted, or completed if its alias was about to be moved.
// CodeConflict when the index of this job was lost since, or when a template, an alias or an index of the cluster prevents the rebuild: what
// others read is never deleted. CodeInvalid when the mapping file cannot be read. counts is called before an index is created, and decides the
// types of its fields; nil decides nothing.
func (r *Rebuild) Begin(ctx context.Context, jobID string, counts Counts) error {
	created := ""
	var decided *index.Spec
	for {
		s, revision, err := readState(ctx, r.cells, r.spec.Alias)
		if err != nil {
			return err
		}
		if s.jobID == jobID && s.step != stepBeginning {
			if created != "" && created != s.identity { // another process has ended the rebuild since
				return r.index.Drop(ctx, core.NextAlias(r.spec.Alias), created)
			}
			return r.check(ctx, s)
		}
		if decided == nil {
			spec, err := r.target(ctx, counts)
			if err != nil {
				return err
			}
			decided = &spec
			continue // the counts may have taken long
		}
		spec := *decided
		if s.jobID != jobID {
			if err := r.takeOver(ctx, jobID, s, revision); err != nil {
				return err
			}
			continue
		}
		if s.identity != "" {
			if err := r.index.Drop(ctx, spec.Alias, s.identity); core.CodeOf(err) == core.CodeConflict { // others read it
				return r.ended(ctx, state{}, revision, err)
			} else if err != nil {
				return err
			}
		}
		if err := r.index.Ensure(ctx, spec); core.CodeOf(err) == core.CodeConflict { // of a template, or of an index with the name of an alias
			_, discardErr := r.Discard(ctx, jobID)
			return errors.Join(err, discardErr)
		} else if err != nil {
			return err
		}
		if created, err = r.index.Identity(ctx, spec.Alias); errors.Is(err, core.ErrIndexMissing) {
			continue // another process has moved or deleted it
		} else if err != nil {
			return err
		}
		err = r.set(ctx, state{stepFilling, jobID, created}, revision)
		if core.CodeOf(err) != core.CodeConflict { // otherwise another process was faster
			return err
		}
	}
}

// takeOver sets the state to the beginning of a job's rebuild, unless another process has changed it. A rebuild whose alias another process
// may move at any time is completed instead: until it is moved, writes must go to both indices.
func (r *Rebuild) takeOver(ctx context.Context, jobID string, s state, revision uint64) error {
	if s.step == stepMoving {
		if err := r.complete(ctx, s, revision); !errors.Is(err, errLost) {
			return err
		}
		return nil
	}
	// The process that sets the cell decides what is left behind: an index that exists afterwards is this job's.
	left, err := r.index.Identity(ctx, core.NextAlias(r.spec.Alias))
	if err != nil && !errors.Is(err, core.ErrIndexMissing) {
		return err
	}
	if err := r.set(ctx, state{stepBeginning, jobID, left}, revision); core.CodeOf(err) != core.CodeConflict {
		return err
	}
	return nil
}

func (r *Rebuild) set(ctx context.Context, s state, revision uint64) error {
	return writeState(ctx, r.cells, r.spec.Alias, s, revision)
}

// Check returns CodeConflict when the index that a job fills was deleted, is not behind its alias any more, or takes no writes while the index
// that it replaces does.
func (r *Rebuild) Check(ctx context.Context, jobID string) error {
	s, _, err := readState(ctx, r.cells, r.spec.Alias)
	if err != nil {
		return err
	}
	if s.jobID != jobID {
		return errDeleted
	}
	return r.check(ctx, s)
}

func (r *Rebuild) check(ctx context.Context, s state) error {
	switch s.step {
	case stepBeginning:
		return errDeleted // the index of an ended job
	case stepFilling, stepLost, stepMoving:
	default:
		return nil
	}
	gone := r.filled(ctx, s)
	if errors.Is(gone, errLost) {
		if moved, err := r.moved(ctx, s); moved || err != nil {
			return err
		}
	}
	if gone != nil {
		return gone
	}
	return r.checkWrites(ctx, s)
}

// filled returns nil if the index that is being filled exists, and is behind the alias for it.
func (r *Rebuild) filled(ctx context.Context, s state) error {
	next := core.NextAlias(r.spec.Alias)
	identity, err := r.index.Identity(ctx, next)
	if err != nil && !errors.Is(err, core.ErrIndexMissing) || err == nil && identity == s.identity {
		return err
	}
	physical := index.PhysicalName(s.identity)
	if physical == "" {
		return errDeleted
	}
	switch identity, err = r.index.Identity(ctx, physical); {
	case err == nil && identity == s.identity:
		return errUnaliased(physical, next)
	case err == nil, errors.Is(err, core.ErrIndexMissing):
		return errDeleted
	default:
		return err
	}
}

// checkWrites returns errLost if the index that is being filled takes, or took, no writes that the index of the alias does.
func (r *Rebuild) checkWrites(ctx context.Context, s state) error {
	err := r.index.Check(ctx, core.NextAlias(r.spec.Alias))
	switch {
	case core.CodeOf(err) == core.CodeIndexBlocked:
		if s.step != stepLost {
			if own := r.index.Check(ctx, r.spec.Alias); own != nil { // a full disk, for example: both wait
				return own
			}
		}
		if moved, err := r.moved(ctx, s); moved || err != nil { // by another process, after it was checked
			return err
		}
		return errBlocked(core.MessageOf(err))
	case err == nil && s.step == stepLost:
		return errMissed
	default:
		return err
	}
}

// moved reports whether the alias stands for the filled index.
func (r *Rebuild) moved(ctx context.Context, s state) (bool, error) {
	identity, err := r.index.Identity(ctx, r.spec.Alias)
	return err == nil && identity == s.identity && identity != "", err
}

// Finish moves the alias to the index that a job has filled. Doing so again has no effect, also in another process at the same time.
// CodeConflict as from Check.
func (r *Rebuild) Finish(ctx context.Context, jobID string) error {
	for {
		s, revision, err := readState(ctx, r.cells, r.spec.Alias)
		if err != nil {
			return err
		}
		if s.jobID != jobID {
			return errDeleted
		}
		if err := r.check(ctx, s); err != nil {
			return err
		}
		switch s.step {
		case stepFilling:
			s.step = stepMoving
			if err := r.set(ctx, s, revision); err != nil && core.CodeOf(err) != core.CodeConflict {
				return err
			}
		case stepMoving:
			return r.complete(ctx, s, revision)
		default:
			return nil
		}
	}
}

// complete moves the alias, unless that is done, and records it. If the filled index is lost, it ends the rebuild instead and returns
// errLost.
func (r *Rebuild) complete(ctx context.Context, s state, revision uint64) error {
	err := r.check(ctx, s)
	if err == nil {
		err = r.moveFilled(ctx, s)
	}
	if errors.Is(err, errLost) {
		return r.abandon(ctx, s, revision, err)
	}
	if err != nil {
		return err
	}
	s.step = stepMoved
	return r.ended(ctx, s, revision, nil)
}

// abandon ends a rebuild whose alias could be moved at any time, because of lost. It deletes the filled index first, so that no process moves
// the alias to it afterwards; if one has, the rebuild is complete.
func (r *Rebuild) abandon(ctx context.Context, s state, revision uint64, lost error) error {
	if err := r.index.Drop(ctx, core.NextAlias(r.spec.Alias), s.identity); err != nil && core.CodeOf(err) != core.CodeConflict {
		return err
	}
	moved, err := r.moved(ctx, s)
	switch {
	case moved:
		s.step = stepMoved
		return r.ended(ctx, s, revision, nil)
	case err != nil && !errors.Is(err, core.ErrIndexMissing):
		return err
	}
	return r.ended(ctx, state{}, revision, lost)
}

// moveFilled moves the alias to the filled index, unless that is done.
func (r *Rebuild) moveFilled(ctx context.Context, s state) error {
	if moved, err := r.moved(ctx, s); moved || err != nil {
		return err
	}
	// The other processes must not take it for an index that was replaced without tutti, and fill it again.
	if err := r.setIdentity(ctx, s.identity); err != nil {
		return err
	}
	err := r.move(ctx, core.NextAlias(r.spec.Alias), s.identity)
	if err == nil {
		return nil
	}
	if gone := r.check(ctx, s); errors.Is(gone, errLost) {
		return gone
	}
	if moved, _ := r.moved(ctx, s); moved { // by another process
		return nil
	}
	return err
}

// ended records the state at the end of a rebuild, unless another process has, and returns outcome.
func (r *Rebuild) ended(ctx context.Context, s state, revision uint64, outcome error) error {
	if err := r.set(ctx, s, revision); err != nil && core.CodeOf(err) != core.CodeConflict {
		return err
	}
	return outcome
}

// move moves the alias to the index with an identity behind from.
func (r *Rebuild) move(ctx context.Context, from, identity string) error {
	if err := r.index.Refresh(ctx, from); err != nil {
		return err
	}
	spec := r.spec
	if file, err := r.mapping(); err == nil { // the index is filled: a file that was damaged since does not matter
		spec.Mapping = file
	}
	return r.index.Swap(ctx, spec, from, identity)
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

// Discard deletes the index that a job did not finish to fill, and ends the mirroring of writes to it. It does nothing to other jobs'. If
// another process has moved the alias to that index, or had begun to, which is completed, it reports that instead. CodeConflict when the
// index is kept, because others read it: nothing needs to be done again.
func (r *Rebuild) Discard(ctx context.Context, jobID string) (moved bool, err error) {
	if err := r.DiscardEnded(ctx, func(_ context.Context, id string) (bool, error) { return id == jobID, nil }); err != nil {
		return false, err
	}
	s, _, err := readState(ctx, r.cells, r.spec.Alias)
	return s.step == stepMoved && s.jobID == jobID, err
}

// DiscardEnded is Discard for a job that has ended, such as a cancelled one.
func (r *Rebuild) DiscardEnded(ctx context.Context, ended Ended) error {
	s, revision, err := readState(ctx, r.cells, r.spec.Alias)
	if err != nil || !s.replacing() {
		return err
	}
	if is, err := ended(ctx, s.jobID); err != nil || !is {
		return err
	}
	next := core.NextAlias(r.spec.Alias)
	switch s.step {
	case stepMoving:
		if err := r.complete(ctx, s, revision); !errors.Is(err, errLost) {
			return err
		}
		return nil
	case stepBeginning: // its identity is not in the cell yet
		if s.identity, err = r.index.Identity(ctx, next); err != nil && !errors.Is(err, core.ErrIndexMissing) {
			return err
		}
	}
	if err := r.set(ctx, state{}, revision); err != nil || s.identity == "" {
		return err
	}
	return r.index.Drop(ctx, next, s.identity) // the alias may be that of the next rebuild already
}
