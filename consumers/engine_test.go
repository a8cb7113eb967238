package consumers_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
)

// engine is an in-memory index: versions are external_gte, a removal leaves a tombstone with its version, and counts and
// scans see what was written before the last refresh.
type engine struct {
	// next, when set, is the index that a rebuild fills: writes go to it, too.
	next *engine
	// latency is how long a write takes.
	latency time.Duration
	// hold, when set, is called before a batch is written and may refuse it as a whole.
	hold func(ctx context.Context, b core.Batch) error
	// item, when set, may decide on one write instead of the engine.
	item func(id string, op core.WriteOp, document []byte) (core.Result, bool)
	// pipeline, when set, changes what is stored.
	pipeline func(source string) string

	// onRefresh, when set, is called before each refresh, and refuseRefresh may refuse it.
	onRefresh     func()
	refuseRefresh func() error
	// refuseGet, when set, may refuse the reading of a document.
	refuseGet func() error
	// onScan, when set, is called before each scan.
	onScan func()
	// busy is for the use of hold.
	busy atomic.Int64
	// scanned counts the documents that scans have read, whatever their version.
	scanned atomic.Int64

	mu        sync.Mutex
	docs      map[string]document
	visible   map[string]document // as of the last refresh
	refreshes int
	seq       int64 // of the last write
	down      error
	prepared  int
	// preparedFrom is the identity with which the index was last prepared.
	preparedFrom string
	made         int
	life         int // of the index: the number of indices before it
	checks       int
	writes       int
	outcomes     map[core.Outcome]int
}

type document struct {
	version core.Version
	seq     int64
	source  []byte
	deleted bool
}

func newEngine() *engine {
	return &engine{latency: time.Millisecond, docs: map[string]document{}, outcomes: map[core.Outcome]int{}}
}

func (e *engine) Encode(dst []byte, w core.Write) ([]byte, int, int) {
	dst = strconv.AppendQuote(dst, w.ID)
	start := len(dst)
	if w.Op == core.OpIndex {
		dst = append(dst, w.Document...)
	}
	end := len(dst)
	return append(dst, '\n'), start, end
}

func (e *engine) Write(ctx context.Context, b core.Batch) ([]core.Result, error) {
	if e.hold != nil {
		if err := e.hold(ctx, b); err != nil {
			return nil, err
		}
	}
	time.Sleep(e.latency)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.down != nil {
		return nil, e.down
	}
	e.writes++
	results := make([]core.Result, len(b.Items))
	for i, it := range b.Items {
		if e.next != nil && b.Index == core.NextAlias("analyses") {
			results[i] = e.next.lockedApply(it, slices.Clone(b.Document(i)))
			e.outcomes[results[i].Outcome]++
			continue
		}
		results[i] = e.apply(it, slices.Clone(b.Document(i)))
		if e.next != nil {
			next := e.next.lockedApply(it, slices.Clone(b.Document(i)))
			if results[i].Mirrored, results[i].NextVersion = true, next.CurrentVersion; next.Outcome == core.OutcomeRejected {
				results[i] = next
			}
		}
		e.outcomes[results[i].Outcome]++
	}
	return results, nil
}

func (e *engine) lockedApply(it core.BatchItem, source []byte) core.Result {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.apply(it, source)
}

func (e *engine) apply(it core.BatchItem, source []byte) core.Result {
	if e.item != nil {
		if r, decided := e.item(it.ID, it.Op, source); decided {
			return r
		}
	}
	if old, known := e.docs[it.ID]; known && (old.version > it.Version || it.Strict && old.version == it.Version) {
		return core.Result{Outcome: core.OutcomeStale, CurrentVersion: old.version}
	}
	e.seq++
	if it.Op == core.OpDelete {
		e.docs[it.ID] = document{version: it.Version, seq: e.seq, deleted: true}
		return core.Result{Outcome: core.OutcomeRemoved}
	}
	if !gjson.ValidBytes(source) {
		return core.Result{Outcome: core.OutcomeRejected, Type: "document_parsing_exception", Reason: "not JSON"}
	}
	if e.pipeline != nil {
		source = []byte(e.pipeline(string(source)))
	}
	e.docs[it.ID] = document{version: it.Version, seq: e.seq, source: source}
	return core.Result{Outcome: core.OutcomeIndexed}
}

// put stores a document that existed before the test.
func (e *engine) put(id string, version core.Version, source string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seq++
	e.docs[id] = document{version: version, seq: e.seq, source: []byte(source)}
}

// drop removes a document like a removal that is requested now.
func (e *engine) drop(id string) { e.remove(id, core.Version(time.Now().UnixNano())) }

// remove leaves the tombstone of a version.
func (e *engine) remove(id string, version core.Version) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seq++
	e.docs[id] = document{version: version, seq: e.seq, deleted: true}
}

// setDown makes every call fail with err, nil brings the index back.
func (e *engine) setDown(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.down = err
}

func (e *engine) Get(id string) (core.StoredDocument, bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.refuseGet != nil {
		if err := e.refuseGet(); err != nil {
			return core.StoredDocument{}, false, err
		}
	}
	d, known := e.docs[id]
	if e.down != nil || !known || d.deleted {
		return core.StoredDocument{}, false, e.down
	}
	return core.StoredDocument{ID: id, Version: d.version, Source: d.source}, true, nil
}

func (e *engine) in(scope core.IndexScope, d document) bool {
	if d.deleted {
		return false
	}
	if scope.Repository != "" && gjson.GetBytes(d.source, `repositories.0.code`).String() != scope.Repository {
		return false
	}
	return scope.Field == "" || gjson.GetBytes(d.source, scope.Field).String() == scope.Organization
}

func (e *engine) Count(scope core.IndexScope) (int64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var n int64
	for _, d := range e.visible {
		if e.in(scope, d) {
			n++
		}
	}
	return n, e.down
}

// Checkpoint returns the number of the last write.
func (e *engine) Checkpoint() (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.seq == 0 {
		return core.CheckpointNone, e.down
	}
	return strconv.FormatInt(e.seq, 10), e.down
}

func (e *engine) Scan(scope core.IndexScope, below core.Version, each func(string, core.Version) error) error {
	if e.onScan != nil {
		e.onScan()
	}
	e.mu.Lock()
	hits := map[string]core.Version{}
	mark, markErr := strconv.ParseInt(scope.WrittenBy, 10, 64)
	for id, d := range e.visible {
		if d.deleted || markErr == nil && d.seq > mark {
			continue
		}
		e.scanned.Add(1)
		if e.in(scope, d) && scope.Includes(d.version, below) {
			hits[id] = d.version
		}
	}
	err := e.down
	e.mu.Unlock()
	if err != nil {
		return err
	}
	for id, v := range hits {
		if err := each(id, v); err != nil {
			return err
		}
	}
	return nil
}

func (e *engine) Refresh() error {
	if e.onRefresh != nil {
		e.onRefresh()
	}
	if e.refuseRefresh != nil {
		if err := e.refuseRefresh(); err != nil {
			return err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.down == nil {
		e.refreshes++
		e.visible = maps.Clone(e.docs)
	}
	return e.down
}

// lose deletes the index with all that it holds. The caller holds e.mu.
func (e *engine) lose() {
	e.docs, e.visible, e.down = map[string]document{}, nil, errLostIndex
	e.life++
}

// replace deletes the index, and another process recreates it at once, empty.
func (e *engine) replace() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lose()
	e.down = nil
}

func (e *engine) Prepare(identity string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.preparedFrom = identity
	e.prepared++
	if errors.Is(e.down, core.ErrIndexMissing) {
		e.made, e.down = e.made+1, nil
	}
	return e.down
}

func (e *engine) Identity() (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return "index-" + strconv.Itoa(e.life), e.down
}

func (e *engine) Check() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.checks++
	return e.down
}

// reopen forgets the versions of removals, like a reopened shard.
func (e *engine) reopen() {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.docs, func(_ string, d document) bool { return d.deleted })
}

// live returns the sources of all documents.
func (e *engine) live() map[string]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return sources(e.docs)
}

// has reports whether there is a document.
func (e *engine) has(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	d, there := e.docs[id]
	return there && !d.deleted
}

// found returns the sources of all documents that a search finds, and how often the index was refreshed.
func (e *engine) found() (all map[string]string, refreshes int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return sources(e.visible), e.refreshes
}

func sources(docs map[string]document) map[string]string {
	all := map[string]string{}
	for id, d := range docs {
		if !d.deleted {
			all[id] = string(d.source)
		}
	}
	return all
}

func (e *engine) count(o core.Outcome) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.outcomes[o]
}
