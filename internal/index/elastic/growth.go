package elastic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

const (
	// maxGrowRounds bounds how often documents are sent again within one Write: once for the fields that this process
	// knew to be missing, and again where the mapping was another one than it thought.
	maxGrowRounds = 3
	// maxLoggedFields bounds the names in the log of a growth.
	maxLoggedFields = 20
)

// rejectedDoc is a document that the mapping lacks a field for.
type rejectedDoc struct {
	item int // its place in the batch
	doc  []byte
	// fields is what it brings, nil for nothing.
	fields *mapping.Field
	// valueless are its members that hold no value and whose type nobody can know; they are left out when it is sent,
	// which makes no difference to a search and poisons no later document.
	valueless []string
	// result is why it can never be written, nil when it can.
	result *core.Result
}

// growMapping looks after the documents of b that met unknown paths under a strict mapping: it adds the fields, sends these
// documents again, and replaces their results.
func (x *Index) growMapping(ctx context.Context, st *aliasState, b core.Batch, results []core.Result) {
	for round := range maxGrowRounds {
		var todo []*rejectedDoc
		for i := range results {
			if results[i].Type == typeStrictMapping && results[i].Outcome == core.OutcomeRejected {
				todo = append(todo, &rejectedDoc{item: i, doc: b.Document(i)})
			}
		}
		if len(todo) == 0 {
			return
		}
		if err := x.extendMapping(ctx, st, b.Index, todo, round > 0); err != nil {
			x.retryLater(b, todo, results, err)
			return
		}
		x.resend(ctx, st, b, todo, results)
	}
}

// retryLater makes todo retryable: the cluster could not be asked.
func (x *Index) retryLater(b core.Batch, todo []*rejectedDoc, results []core.Result, err error) {
	code := core.CodeOf(err)
	if !core.Retryable(err) {
		code = core.CodeUnavailable
		// The text of err may quote the document.
		x.logger.Warn("documents could not be sent again after the mapping had grown", "index", b.Index, "code", code, "error_type", typeOf(err))
	}
	for _, c := range todo {
		results[c.item] = core.Result{Outcome: core.OutcomeRetry, Type: typeOf(err), Code: code}
	}
}

// resend writes the candidates that were not refused in a bulk request of their own.
func (x *Index) resend(ctx context.Context, st *aliasState, b core.Batch, todo []*rejectedDoc, results []core.Result) {
	var (
		body    []byte
		items   []core.BatchItem
		sent    []*rejectedDoc
		trimmed int
	)
	done := lastApplied(b, results)
	for _, c := range todo {
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
		st.trimFirst.Store(true)
	}
	again, err := x.send(ctx, b, items, body)
	if err != nil {
		x.retryLater(b, sent, results, err)
		return
	}
	for i, c := range sent {
		results[c.item] = again[i]
	}
}

// appliedWrite is a write that went through: its place in the batch and its version.
type appliedWrite struct {
	at      int
	version core.Version
}

// lastApplied gives, by id, the last write of b that went through. A write that is sent again must not overtake a later
// one of the same document with the same version, as the cluster would let it.
func lastApplied(b core.Batch, results []core.Result) map[string]appliedWrite {
	done := make(map[string]appliedWrite, len(results))
	for i, r := range results {
		if r.Outcome == core.OutcomeIndexed || r.Outcome == core.OutcomeRemoved {
			done[b.Items[i].ID] = appliedWrite{at: i, version: b.Items[i].Version}
		}
	}
	return done
}

// appendTrimmed appends the encoding of b's i-th item to dst, without the members at empties.
func appendTrimmed(dst []byte, b core.Batch, i int, empties []string) []byte {
	item := b.Items[i]
	if len(empties) == 0 {
		return append(dst, b.Body[item.Start:item.End]...)
	}
	dst = append(dst, b.Body[item.Start:item.DocStart]...)
	dst = mapping.Remove(dst, b.Body[item.DocStart:item.DocEnd], empties)
	return append(dst, b.Body[item.DocEnd:item.End]...)
}

// extendMapping makes the mapping of alias take the candidates, or says of each why it cannot. fresh reads the mapping first;
// without it the remembered one is tried, and read again when it does not explain what the cluster said. An error
// means that the cluster could not be asked.
func (x *Index) extendMapping(ctx context.Context, st *aliasState, alias string, todo []*rejectedDoc, fresh bool) error {
	if err := st.lock(ctx); err != nil {
		return err
	}
	defer st.unlock()
	tree := st.tree.Load()
	if tree != nil && !fresh {
		added, explained := planFields(tree, todo)
		if explained {
			err := x.addFields(ctx, st, alias, tree, added)
			if err == nil || typeOf(err) != typeIllegalArgument {
				return err
			}
		}
	}
	tree, err := x.fetchTree(ctx, alias)
	if err != nil {
		return err
	}
	st.tree.Store(tree)
	added, _ := planFields(tree, todo)
	err = x.addFields(ctx, st, alias, tree, added)
	if typeOf(err) != typeIllegalArgument {
		return err
	}
	return x.addOneByOne(ctx, st, alias, todo)
}

// planFields derives for each candidate what it adds to tree and what is left of it without a value, and gives all that is
// to be added. What an earlier candidate adds is known to a later one. explained is false when the tree does not show
// why the cluster turned each of them away, so that it must be out of date.
func planFields(tree *mapping.Field, todo []*rejectedDoc) (added *mapping.Field, explained bool) {
	explained = true
	for _, c := range todo {
		c.fields, c.valueless, c.result = nil, nil, nil
		own, err := mapping.Derive(tree, c.doc)
		if err == nil && !own.Empty() {
			var grown *mapping.Field
			if grown, err = mapping.Merge(tree, own); err == nil {
				tree, c.fields = grown, own
				added, err = mapping.Merge(added, own)
			}
		}
		if err == nil {
			c.valueless, err = mapping.Empties(tree, c.doc)
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

// addFields puts the fields of added into the mapping of alias, which is tree.
func (x *Index) addFields(ctx context.Context, st *aliasState, alias string, tree, added *mapping.Field) error {
	if added.Empty() {
		return nil
	}
	if err := x.putMapping(ctx, alias, added); err != nil {
		return err
	}
	grown, err := mapping.Merge(tree, added)
	if err != nil {
		return core.WrapError(core.CodeInternal, "the mapping of "+alias+" cannot be extended", err)
	}
	st.tree.Store(grown)
	x.logger.Info("the mapping has grown", "index", alias, "fields", fieldNames(added))
	return nil
}

// addOneByOne adds the fields of each candidate by themselves, so that those which the cluster refuses (over the limit
// of fields, say) cost only the documents that bring them.
func (x *Index) addOneByOne(ctx context.Context, st *aliasState, alias string, todo []*rejectedDoc) error {
	for _, c := range todo {
		tree := st.tree.Load()
		added, _ := planFields(tree, []*rejectedDoc{c})
		if c.result != nil {
			continue
		}
		err := x.addFields(ctx, st, alias, tree, added)
		if typeOf(err) == typeIllegalArgument {
			c.result = &core.Result{
				Outcome: core.OutcomeRejected, Type: typeIllegalArgument, Reason: responseErrorOf(err).fullReason(),
			}
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// putMapping adds fields to the mapping of alias. What the root says beside its fields stays as it is.
func (x *Index) putMapping(ctx context.Context, alias string, added *mapping.Field) error {
	only := &mapping.Field{Type: mapping.Object, Properties: added.Properties}
	body, err := only.Render()
	if err != nil {
		return err
	}
	return x.putRawMapping(ctx, alias, body)
}

func (x *Index) putRawMapping(ctx context.Context, alias string, body json.RawMessage) error {
	_, err := x.client.do(ctx, esapi.IndicesPutMappingRequest{Index: []string{alias}, Body: bytes.NewReader(body)}, nil)
	if err == nil {
		x.grown(alias)
	}
	return err
}

// rejection makes the result of a document that no mapping can take.
func rejection(err error) *core.Result {
	result := &core.Result{Outcome: core.OutcomeRejected, Type: mapping.TypeParsing, Reason: truncate(err.Error())}
	if parsing, ok := errors.AsType[*mapping.ParsingError](err); ok {
		result.Type = parsing.Type
	}
	return result
}

func fieldNames(added *mapping.Field) string {
	var names []string
	for name := range added.All() {
		if len(names) == maxLoggedFields {
			names = append(names, "…")
			break
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}
