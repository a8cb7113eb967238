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

// candidate is a document that the mapping lacks a field for.
type candidate struct {
	item int // its place in the batch
	doc  []byte
	// added is what it brings, nil for nothing.
	added *mapping.Field
	// empties are its members that hold no value and whose type nobody can know; they are left out when it is sent,
	// which makes no difference to a search and poisons no later document.
	empties []string
	// refused is why it can never be written, nil when it can.
	refused *core.Result
}

// grow looks after the documents of b that met unknown paths under a strict mapping: it adds the fields, sends these
// documents again, and replaces their results.
func (x *Index) grow(ctx context.Context, st *aliasState, b core.Batch, results []core.Result) {
	for round := range maxGrowRounds {
		var todo []*candidate
		for i := range results {
			if results[i].Type == typeStrictMapping && results[i].Outcome == core.OutcomeRejected {
				todo = append(todo, &candidate{item: i, doc: b.Document(i)})
			}
		}
		if len(todo) == 0 {
			return
		}
		if err := x.extend(ctx, st, b.Index, todo, round > 0); err != nil {
			x.postpone(b, todo, results, err)
			return
		}
		x.resend(ctx, st, b, todo, results)
	}
}

// postpone makes todo retryable: the cluster could not be asked.
func (x *Index) postpone(b core.Batch, todo []*candidate, results []core.Result, err error) {
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
func (x *Index) resend(ctx context.Context, st *aliasState, b core.Batch, todo []*candidate, results []core.Result) {
	var (
		body    []byte
		items   []core.BatchItem
		sent    []*candidate
		trimmed int
	)
	done := finished(b, results)
	for _, c := range todo {
		if c.refused != nil {
			results[c.item] = *c.refused
			continue
		}
		if newer, ok := done[b.Items[c.item].ID]; ok && newer.at > c.item && newer.version >= b.Items[c.item].Version {
			results[c.item] = core.Result{Outcome: core.OutcomeStale, CurrentVersion: newer.version}
			continue
		}
		if len(c.empties) > 0 {
			trimmed++
		}
		body = appendTrimmed(body, b, c.item, c.empties)
		items = append(items, b.Items[c.item])
		sent = append(sent, c)
	}
	if len(sent) == 0 {
		return
	}
	if weighs(trimmed, len(b.Items)) {
		st.eager.Store(true)
	}
	again, err := x.send(ctx, b, items, body)
	if err != nil {
		x.postpone(b, sent, results, err)
		return
	}
	for i, c := range sent {
		results[c.item] = again[i]
	}
}

// written is a write that went through: its place in the batch and its version.
type written struct {
	at      int
	version core.Version
}

// finished gives, by id, the last write of b that went through. A write that is sent again must not overtake a later
// one of the same document with the same version, as the cluster would let it.
func finished(b core.Batch, results []core.Result) map[string]written {
	done := make(map[string]written, len(results))
	for i, r := range results {
		if r.Outcome == core.OutcomeIndexed || r.Outcome == core.OutcomeRemoved {
			done[b.Items[i].ID] = written{at: i, version: b.Items[i].Version}
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

// extend makes the mapping of alias take the candidates, or says of each why it cannot. fresh reads the mapping first;
// without it the remembered one is tried, and read again when it does not explain what the cluster said. An error
// means that the cluster could not be asked.
func (x *Index) extend(ctx context.Context, st *aliasState, alias string, todo []*candidate, fresh bool) error {
	if err := st.lock(ctx); err != nil {
		return err
	}
	defer st.unlock()
	tree := st.tree.Load()
	if tree != nil && !fresh {
		added, explained := plan(tree, todo)
		if explained {
			err := x.add(ctx, st, alias, tree, added)
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
	added, _ := plan(tree, todo)
	err = x.add(ctx, st, alias, tree, added)
	if typeOf(err) != typeIllegalArgument {
		return err
	}
	return x.addSingly(ctx, st, alias, todo)
}

// plan derives for each candidate what it adds to tree and what is left of it without a value, and gives all that is
// to be added. What an earlier candidate adds is known to a later one. explained is false when the tree does not show
// why the cluster turned each of them away, so that it must be out of date.
func plan(tree *mapping.Field, todo []*candidate) (added *mapping.Field, explained bool) {
	explained = true
	for _, c := range todo {
		c.added, c.empties, c.refused = nil, nil, nil
		own, err := mapping.Derive(tree, c.doc)
		if err == nil && !own.Empty() {
			var grown *mapping.Field
			if grown, err = mapping.Merge(tree, own); err == nil {
				tree, c.added = grown, own
				added, err = mapping.Merge(added, own)
			}
		}
		if err == nil {
			c.empties, err = mapping.Empties(tree, c.doc)
		}
		if err != nil {
			c.refused, explained = rejection(err), false
		}
		if c.added == nil && len(c.empties) == 0 {
			explained = false
		}
	}
	return added, explained
}

// add puts the fields of added into the mapping of alias, which is tree.
func (x *Index) add(ctx context.Context, st *aliasState, alias string, tree, added *mapping.Field) error {
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

// addSingly adds the fields of each candidate by themselves, so that those which the cluster refuses (over the limit
// of fields, say) cost only the documents that bring them.
func (x *Index) addSingly(ctx context.Context, st *aliasState, alias string, todo []*candidate) error {
	for _, c := range todo {
		tree := st.tree.Load()
		added, _ := plan(tree, []*candidate{c})
		if c.refused != nil {
			continue
		}
		err := x.add(ctx, st, alias, tree, added)
		if typeOf(err) == typeIllegalArgument {
			c.refused = &core.Result{
				Outcome: core.OutcomeRejected, Type: typeIllegalArgument, Reason: failureOf(err).text(),
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
	result := &core.Result{Outcome: core.OutcomeRejected, Type: mapping.TypeParsing, Reason: shorten(err.Error())}
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
