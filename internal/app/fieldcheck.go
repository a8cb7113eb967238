package app

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"tutti/internal/app/settings"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/index"
	"tutti/internal/index/document"
	"tutti/internal/index/mapping"
	"tutti/internal/upstream"
)

const (
	// limitsTTL is how long the limits of an index are cached, also when it has not answered.
	limitsTTL = 30 * time.Second
	// limitsWait is how long one submission waits for them.
	limitsWait = time.Second
)

// limitsReader is an engine that knows the limits of its indices.
type limitsReader interface {
	Limits(ctx context.Context, alias string) (mapping.Limits, error)
}

// indexLimits caches the limits of an index: those that it has or, until it exists, those with which it will be made.
type indexLimits struct {
	engine limitsReader
	alias  string
	new    mapping.Limits

	mu  sync.Mutex
	due time.Time // of the next reading
	now mapping.Limits
}

// get returns the limits as last read. It reads them again when they are due, and waits for an engine that does not answer for at most
// limitsWait: a submission does not depend on the index.
func (l *indexLimits) get(ctx context.Context) mapping.Limits {
	l.mu.Lock()
	due := l.engine != nil && time.Now().After(l.due)
	if due {
		l.due = time.Now().Add(limitsTTL) // one call reads
	}
	now := l.now
	l.mu.Unlock()
	if !due {
		return now
	}
	within, cancel := context.WithTimeout(ctx, limitsWait)
	defer cancel()
	found, err := l.engine.Limits(within, l.alias)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.now = found
	case core.CodeOf(err) == core.CodeIndexBlocked:
		l.now, l.due = l.new, time.Time{} // it may soon exist
	}
	return l.now
}

// documentCheck returns a function that reports why the index would reject the documents of an analysis, whatever else it has: for
// what no mapping with the initial fields of the repository can hold, for more fields, lists of objects, objects in them or levels than
// the index takes, and for longer terms. It returns "" for all others.
func (b *builtIn) documentCheck(rc config.Repository) (func(ctx context.Context, a datamodel.Analysis) string, error) {
	kind := rc.Kind()
	known, err := index.Spec{Mapping: rc.Mapping, Known: kind.Known(), NewFields: rc.NewFields}.Fields()
	switch code := core.CodeOf(err); {
	case code == core.CodeInvalid, code == core.CodeUnsupported: // of the mapping file: the repository pauses, and says why
		return func(context.Context, datamodel.Analysis) string { return "" }, nil
	case err != nil:
		return nil, err
	}
	known.UseFirstValue() // of the types, what is declared and what the index has decide when it is written
	limits := &indexLimits{alias: rc.IndexName, new: settings.Limits(b.cfg.Index).With(rc.Mapping)}
	limits.engine, _ = b.data.Engine.(limitsReader)
	limits.now = limits.new
	block := upstream.RepositoriesBlock(rc.Core())
	check := &fieldCheck{known: known}
	return func(ctx context.Context, a datamodel.Analysis) (fault string) {
		of := limits.get(ctx)
		rec := core.Record{ID: a.ID, Organization: a.Study, State: string(a.State), Indexable: true, Body: a.Body}
		if kind.Split == nil {
			return check.fault(of, kind.Append(nil, rec, block))
		}
		_ = kind.Split(rec, block, func(_ string, document []byte) error { // the consumers report what it rejects
			if fault == "" {
				fault = check.fault(of, document)
			}
			return nil
		})
		return fault
	}, nil
}

// maxAccepted bounds the fields that a fieldCheck remembers.
const maxAccepted = 1000

// fieldCheck finds why no index with some fields takes a document. It remembers the fields of those that one may take: a document that has no
// others is read once. It is safe for concurrent use.
type fieldCheck struct {
	known    *mapping.Field
	accepted atomic.Pointer[acceptedFields]
}

// acceptedFields are known and further ones, which an index with the limits takes.
type acceptedFields struct {
	tree   *mapping.Field
	limits mapping.Limits
}

// fault returns why no index with the fields known and these limits takes a document, "" if one may.
func (c *fieldCheck) fault(limits mapping.Limits, doc []byte) string {
	before := c.accepted.Load()
	if before != nil && before.limits == limits {
		if unknown, fault := checkFields(before.tree, limits, doc); !unknown && fault == "" {
			return ""
		}
	}
	grown, added, err := document.Grow(c.known, nil, doc)
	if err != nil {
		return withHint(err.Error())
	}
	if added != nil {
		if fault := limits.Exceeded(grown); fault != "" {
			return withHint(fault)
		}
	}
	if _, fault := checkFields(grown, limits, doc); fault != "" {
		return withHint(fault)
	}
	bound := limits
	bound.Fields = min(bound.Fields, maxAccepted)
	if before != nil && before.limits == limits && added != nil {
		if both, err := mapping.Merge(before.tree, added); err == nil && bound.Exceeded(both) == "" {
			grown = both
		}
	}
	if bound.Exceeded(grown) == "" {
		c.accepted.Store(&acceptedFields{grown, limits})
	}
	return ""
}

// checkFields returns why an index with exactly these fields does not take a document, and whether the document has others.
func checkFields(tree *mapping.Field, limits mapping.Limits, doc []byte) (unknown bool, fault string) {
	checker := document.Checker{AllNames: true, AllTerms: limits.AllTerms}
	var counted document.NestedCounter
	unknown, err := checker.Check(tree, doc, &counted)
	if err != nil {
		return unknown, err.Error()
	}
	return unknown, limits.ExceededBy(counted.Objects)
}

// withHint returns a reason with what to do about it.
func withHint(reason string) string {
	if hint := document.RejectionHint(reason); hint != "" {
		return reason + ": " + hint
	}
	return reason
}
