package write

import (
	"context"
	"errors"
	"log/slog"

	"tutti/internal/core"
	"tutti/internal/index/document"
	"tutti/internal/index/elastic/aliases"
	"tutti/internal/index/elastic/transport"
	"tutti/internal/index/mapping"
)

const (
	// maxGrowRounds limits how often documents are sent again within one Write: once after adding the fields missing in the
	// cached mapping, and again if the mapping was a different one.
	maxGrowRounds = 3
)

// mapper extends the mapping of an alias for the documents of a batch.
type mapper struct {
	meta   *aliases.Aliases
	logger *slog.Logger
	// send sends items of b, encoded in body, as one bulk request.
	send func(ctx context.Context, b core.Batch, items []core.BatchItem, body []byte) ([]core.Result, error)
}

// rejectedDoc is a document that the cluster rejected because of a field that the strict mapping does not have.
type rejectedDoc struct {
	item int // index in the batch
	doc  []byte
	// fields are the new fields of the document, nil for none.
	fields *mapping.Field
	// valueless are the paths of members that are only null, [] or {}. Their type cannot be derived, so they are removed before
	// sending, which changes no search result.
	valueless []string
	// result is the final Result if no mapping can accept the document, else nil.
	result *core.Result
}

// grow handles the documents of b with unknown paths under a strict mapping: it adds the fields, sends these documents
// again, and replaces their results.
func (m *mapper) grow(ctx context.Context, st *aliases.Alias, b core.Batch, results []core.Result) {
	for round := range maxGrowRounds {
		var docs []*rejectedDoc
		for i := range results {
			if results[i].Type == transport.TypeStrictMapping && results[i].Outcome == core.OutcomeRejected {
				docs = append(docs, &rejectedDoc{item: i, doc: b.Document(i)})
			}
		}
		if len(docs) == 0 {
			return
		}
		if err := m.extend(ctx, st, b.Index, docs, round > 0); err != nil {
			m.retryLater(b, docs, results, err)
			return
		}
		m.resend(ctx, st, b, docs, results)
	}
}

// retryLater sets the results of docs to OutcomeRetry after a request to the cluster failed.
func (m *mapper) retryLater(b core.Batch, docs []*rejectedDoc, results []core.Result, err error) {
	code := core.CodeOf(err)
	if !core.Retryable(err) {
		code = core.CodeUnavailable
		// err must not be logged: it may contain parts of a document.
		m.logger.Warn("documents could not be sent again after the mapping was extended", "index", b.Index, "code", code, "error_type", transport.TypeOf(err))
	}
	for _, c := range docs {
		results[c.item] = core.Result{Outcome: core.OutcomeRetry, Type: transport.TypeOf(err), Code: code}
	}
}

// resend sends the documents without a final result in a separate bulk request.
func (m *mapper) resend(ctx context.Context, st *aliases.Alias, b core.Batch, docs []*rejectedDoc, results []core.Result) {
	var (
		body    []byte
		items   []core.BatchItem
		sent    []*rejectedDoc
		trimmed int
	)
	done := lastApplied(b, results)
	for _, c := range docs {
		if c.result != nil {
			results[c.item] = *c.result
			continue
		}
		if newer, ok := done[b.Items[c.item].ID]; ok && newer.at > c.item && newer.version >= b.Items[c.item].Version {
			results[c.item] = core.Result{Outcome: core.OutcomeStale, CurrentVersion: newer.version}
			continue
		}
		if len(c.valueless) > 0 {
			trimmed++
		}
		body = appendTrimmed(body, b, c.item, c.valueless)
		items = append(items, b.Items[c.item])
		sent = append(sent, c)
	}
	if len(sent) == 0 {
		return
	}
	if worthTrimming(trimmed, len(b.Items)) {
		st.TrimFirst.Store(true)
	}
	again, err := m.send(ctx, b, items, body)
	if err != nil {
		m.retryLater(b, sent, results, err)
		return
	}
	for i, c := range sent {
		results[c.item] = again[i]
	}
}

// appliedWrite is the index in the batch and the version of a write that applied.
type appliedWrite struct {
	at      int
	version core.Version
}

// lastApplied returns, by id, the last write of b that applied. A write that is sent again must not overwrite a later one of the
// same id with an equal version, which external_gte would allow.
func lastApplied(b core.Batch, results []core.Result) map[string]appliedWrite {
	done := make(map[string]appliedWrite, len(results))
	for i, r := range results {
		if r.Outcome == core.OutcomeIndexed || r.Outcome == core.OutcomeRemoved {
			done[b.Items[i].ID] = appliedWrite{at: i, version: b.Items[i].Version}
		}
	}
	return done
}

// appendTrimmed appends the encoding of b's i-th item to dst without the members at paths.
func appendTrimmed(dst []byte, b core.Batch, i int, paths []string) []byte {
	item := b.Items[i]
	if len(paths) == 0 {
		return append(dst, b.Body[item.Start:item.End]...)
	}
	dst = append(dst, b.Body[item.Start:item.DocStart]...)
	dst = document.Remove(dst, b.Body[item.DocStart:item.DocEnd], paths)
	return append(dst, b.Body[item.DocEnd:item.End]...)
}

// extend adds the fields of docs to the mapping of alias, or sets the result of those that can never be written. If fresh, it reads
// the mapping in any case; otherwise not where the remembered one says that the documents are only to be trimmed. A non-nil error is a failed
// request to the cluster.
func (m *mapper) extend(ctx context.Context, st *aliases.Alias, alias string, docs []*rejectedDoc, fresh bool) error {
	if err := st.Lock(ctx); err != nil {
		return err
	}
	defer st.Unlock()
	types := m.meta.Types.Of(alias)
	if tree := st.Seen().Tree; tree != nil && !fresh {
		if added, explained := planFields(tree, types, docs); explained && added.Empty() {
			return nil
		}
	}
	seen, err := m.read(ctx, st, alias)
	if err != nil {
		return err
	}
	added, _ := planFields(seen.Tree, types, docs)
	_, err = m.meta.AddFields(ctx, st, alias, seen, added)
	if !transport.RejectsFields(err) {
		return err
	}
	return m.addOneByOne(ctx, st, alias, docs)
}

// read reads the mapping of alias, and stores it in st. A field is added only to what was just read: alias may have another index by now, in which
// the field exists, or in whose fields a rebuild has decided otherwise.
func (m *mapper) read(ctx context.Context, st *aliases.Alias, alias string) (*aliases.Seen, error) {
	seen, err := m.meta.Read(ctx, alias)
	if err == nil {
		st.Update(seen)
	}
	return seen, err
}

// planFields sets the new fields, the empty members and the final result of each document, and returns all fields to add. Later
// documents see the fields of earlier ones. explained is false if some rejection has no cause in tree, which is then outdated.
func planFields(tree *mapping.Field, types *mapping.Types, docs []*rejectedDoc) (added *mapping.Field, explained bool) {
	explained = true
	for _, c := range docs {
		c.fields, c.valueless, c.result = nil, nil, nil
		own, err := document.Derive(tree, types, c.doc)
		if err == nil && !own.Empty() {
			var grown *mapping.Field
			if grown, err = mapping.Merge(tree, own); err == nil {
				tree, c.fields = grown, own
				added, err = mapping.Merge(added, own)
			}
		}
		if err == nil {
			c.valueless, err = document.Empties(tree, c.doc)
		}
		if err != nil {
			c.result, explained = rejection(err), false
		}
		if c.fields == nil && len(c.valueless) == 0 {
			explained = false
		}
	}
	return added, explained
}

// addOneByOne adds the fields of each document separately, so that a rejected field, such as one over the limit of fields, fails
// only the documents that add it. Another process may have added some after the mapping was read.
func (m *mapper) addOneByOne(ctx context.Context, st *aliases.Alias, alias string, docs []*rejectedDoc) error {
	seen, err := m.read(ctx, st, alias)
	if err != nil {
		return err
	}
	for _, c := range docs {
		added, _ := planFields(seen.Tree, m.meta.Types.Of(alias), []*rejectedDoc{c})
		if c.result != nil {
			continue
		}
		grown, err := m.meta.AddFields(ctx, st, alias, seen, added)
		if transport.RejectsFields(err) {
			c.result = &core.Result{
				Outcome: core.OutcomeRejected, Type: transport.TypeOf(err), Reason: transport.ErrorOf(err).FullReason(),
				Hint: rejectionHint(&transport.ErrorOf(err).EngineError),
			}
			continue
		}
		if err != nil {
			return err
		}
		seen = grown
	}
	return nil
}

// rejection returns the result of a document that no mapping can accept.
func rejection(err error) *core.Result {
	result := &core.Result{
		Outcome: core.OutcomeRejected, Type: core.TypeParsing, Reason: transport.TruncateReason(err.Error()), Hint: document.RejectionHint(err.Error()),
	}
	if parsing, ok := errors.AsType[*document.ParsingError](err); ok {
		result.Type = parsing.Type
	}
	return result
}
