package schemas

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/schemas/jsontree"
	"tutti/schemas/validation"
	"tutti/schemas/violation"
)

// maxInFlight bounds the bytes of the analyses that are validated at the same time.
const maxInFlight = 16 << 20

// errOverdue is the error of an analysis whose version is quarantined.
var errOverdue = errors.New("validation takes too long")

// quarantine holds the versions whose validation took longer than it may. They accept no further analyses until a later version
// is registered.
type quarantine struct {
	mu       sync.Mutex
	versions map[datamodel.AnalysisTypeRef]struct{}
	metrics  *Metrics
}

func (q *quarantine) add(ref datamodel.AnalysisTypeRef) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.versions[ref] = struct{}{}
	q.metrics.quarantined(len(q.versions))
}

func (q *quarantine) has(ref datamodel.AnalysisTypeRef) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, ok := q.versions[ref]
	return ok
}

// release removes the versions of a type below before.
func (q *quarantine) release(name string, before int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for ref := range q.versions {
		if ref.Name == name && ref.Version < before {
			delete(q.versions, ref)
		}
	}
	q.metrics.quarantined(len(q.versions))
}

// list returns the versions by name and number.
func (q *quarantine) list() []datamodel.AnalysisTypeRef {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.SortedFunc(maps.Keys(q.versions), func(a, b datamodel.AnalysisTypeRef) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
}

// overdueError returns the error of an analysis whose version is quarantined.
func (v *versions) overdueError(ref datamodel.AnalysisTypeRef) error {
	message := "validating it takes too long: version " + strconv.Itoa(ref.Version) + " of " + violation.Quoted(ref.Name) + " took longer than " +
		v.cfg.ValidationTime.String() + " for an analysis, and takes no others until a later version is registered"
	return &core.Error{
		Code: core.CodeInvalid, ErrorID: errorIDViolation, Message: message, Err: errOverdue,
		Hint:       "register a version whose schema refers to itself less often and has simpler expressions",
		Violations: []core.Violation{{Message: message, Keyword: "schema"}},
	}
}

// check returns the violations of an analysis. Errors: errOverdue if the version is or becomes quarantined, ErrTooMuchWork,
// CodeUnavailable if ctx ends. The validation continues without its caller until its own time is over.
func (v *versions) check(ctx context.Context, ref datamodel.AnalysisTypeRef, types *compiled, tree *jsontree.Value) (*violation.List, error) {
	weight := min(maxInFlight, max(int64(tree.To-tree.From), maxInFlight/int64(2*runtime.GOMAXPROCS(0))))
	if err := v.inFlight.Acquire(ctx, weight); err != nil {
		return nil, givenUp(err)
	}
	type outcome struct {
		found *violation.List
		err   error
	}
	done := make(chan outcome, 1)
	v.calls.waiters.Go(func() {
		defer v.inFlight.Release(weight)
		overdue := time.AfterFunc(v.cfg.ValidationTime, func() { v.overdue(ref, types) })
		defer overdue.Stop()
		found, err := recovered(ctx, func(context.Context) (*violation.List, error) { return types.rules.Validate(tree) })
		done <- outcome{found, err}
	})
	select {
	case o := <-done:
		if errors.Is(o.err, validation.ErrStopped) {
			return nil, errOverdue
		}
		return o.found, o.err
	case <-types.overdue:
		return nil, errOverdue
	case <-ctx.Done():
		return nil, givenUp(ctx.Err())
	}
}

// overdue quarantines a version and ends its validations in flight.
func (v *versions) overdue(ref datamodel.AnalysisTypeRef, types *compiled) {
	types.once.Do(func() {
		v.quarantine.add(ref)
		v.rules.Remove(ref)
		types.rules.Stop()
		close(types.overdue)
		v.cfg.Logger.Error("validation took too long: the version accepts no further analyses until a later one is registered",
			"name", ref.Name, "version", ref.Version, "limit", v.cfg.ValidationTime)
	})
}
