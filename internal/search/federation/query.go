package federation

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"tutti/internal/core"
	"tutti/internal/filter/sqon"
	"tutti/internal/search/graphql"
	"tutti/internal/search/view"
)

// Values of the status of a node.
const (
	statusOK    = "OK"
	statusError = "ERROR"
)

// nodeResult is the response of one node.
type nodeResult struct {
	// counted is set if it responded without errors; hits is the number of documents and fields holds the aggregations of the
	// response.
	counted bool
	hits    int64
	fields  map[string]*fieldReply
	// errors is the displayable error text, "" for none.
	errors string
}

// Query queries the selected nodes concurrently and merges their responses. An error is CodeInvalid for a catalogue without a
// network, and CodeUnavailable if ctx ends first.
func (f *Federation) Query(ctx context.Context, view *view.View, r graphql.NetworkRequest) (graphql.NetworkAnswer, error) {
	n := f.networkFor(view.Model().Definition())
	if n == nil {
		return graphql.NetworkAnswer{}, core.NewError(core.CodeInvalid, "this catalogue is not part of a network")
	}
	filter, err := sqon.ParseLenient(r.Filters)
	if err != nil {
		return graphql.NetworkAnswer{}, err
	}
	a := federatedQuery{Federation: f, request: r, filter: filter}
	for i := range r.Fields {
		a.fields = append(a.fields, (*aggregate)(&r.Fields[i]))
	}
	all := make([]nodeResult, len(n.nodes))
	var asked sync.WaitGroup
	for i, one := range n.nodes {
		asked.Go(func() { all[i] = a.node(ctx, one) })
	}
	asked.Wait()
	if err := ctx.Err(); err != nil {
		return graphql.NetworkAnswer{}, core.WrapError(core.CodeUnavailable, "request timed out before all nodes responded", err)
	}
	answer := graphql.NetworkAnswer{Nodes: make([]graphql.NetworkNode, len(all)), Aggregations: map[string]json.RawMessage{}}
	for i, one := range all {
		answer.Nodes[i] = graphql.NetworkNode{ID: n.nodes[i].id, Name: n.nodes[i].name, Hits: one.hits, Status: statusOK, Errors: one.errors}
		if one.errors != "" {
			answer.Nodes[i].Status = statusError
		}
	}
	for _, field := range a.fields {
		merged, err := field.merged(all)
		if err != nil {
			return graphql.NetworkAnswer{}, err
		}
		if merged != nil {
			answer.Aggregations[field.Name] = merged
		}
	}
	return answer, nil
}

// federatedQuery is one query to all nodes.
type federatedQuery struct {
	*Federation

	request graphql.NetworkRequest
	filter  sqon.Filter
	fields  []*aggregate
}

// node queries one node. A node that is not selected is listed with its known state.
func (a *federatedQuery) node(ctx context.Context, n *node) nodeResult {
	chosen := n.selected(a.request.Nodes)
	if n.remote == nil {
		if !chosen {
			return nodeResult{}
		}
		lacks := func(name string) bool { return slices.Contains(a.request.Lacking, name) }
		filters, ok := filterFor(a.filter, a.request.Filters, lacks)
		if !ok {
			return nodeResult{counted: true}
		}
		return a.local(ctx, filters)
	}
	fields, why := n.remote.availableFields()
	switch {
	case why != nil:
		return nodeResult{errors: core.MessageOf(why)}
	case !chosen:
		return nodeResult{}
	}
	lacks := func(name string) bool {
		return a.request.Known(name) && !contains(fields, strings.ReplaceAll(name, ".", "__"))
	}
	filters, ok := filterFor(a.filter, a.request.Filters, lacks)
	if !ok {
		return nodeResult{counted: true}
	}
	return a.remote(ctx, n.remote, fields, filters)
}

// contains reports whether a field, or a field below it, is among fields.
func contains(fields map[string]string, name string) bool {
	for field := range fields {
		if field == name || strings.HasPrefix(field, name+"__") {
			return true
		}
	}
	return false
}

// local queries this process' own catalogue, with the caller's permissions. Its errors are shown, because they are the same as in
// a direct query.
func (a *federatedQuery) local(ctx context.Context, filters json.RawMessage) nodeResult {
	q := a.query(a.request.Document, filters, func(g *aggregate) bool { return a.request.Own(g.Name) })
	variables, err := json.Marshal(q.Variables)
	if err != nil {
		return nodeResult{errors: "the query could not be encoded"}
	}
	response := a.request.Local(ctx, core.GraphQLRequest{Query: q.Query, Variables: variables, ReadOnly: true})
	answer, ok := replyOf(response.Body)
	if !ok {
		return nodeResult{errors: "the catalogue returned no response"}
	}
	return resultOf(q, answer, a.request.Document, answer.errorTexts())
}

// remote queries another server for the fields that it has.
func (a *federatedQuery) remote(ctx context.Context, r *remote, fields map[string]string, filters json.RawMessage) nodeResult {
	q := a.query(r.documentType, filters, func(g *aggregate) bool { return fields[g.Name] == g.of() })
	header := forwardedHeaders(r.headers, a.request.Header)
	start := time.Now()
	answer, err := a.cfg.call(ctx, r, header, q)
	if ctx.Err() == nil {
		a.cfg.Metrics.observe(r, time.Since(start))
		a.cfg.Metrics.show(r, err == nil)
	}
	if err != nil {
		return nodeResult{errors: core.MessageOf(err)}
	}
	return resultOf(q, answer, r.documentType, answer.publicErrors(r.secrets(header)))
}

// query returns the query for a node, with the fields that it has.
func (a *federatedQuery) query(document string, filters json.RawMessage, has func(*aggregate) bool) nodeQuery {
	var w queryBuilder
	for _, field := range a.fields {
		if has(field) {
			w.field(field)
		}
	}
	return w.query(document, filters, a.request)
}

// resultOf reads a response. errors is the text for its errors: none of the documents of a node with errors are counted, so that
// its hits and the aggregations of the network are consistent.
func resultOf(q nodeQuery, answer reply, document, errors string) nodeResult {
	if errors != "" {
		return nodeResult{errors: errors}
	}
	var data *struct {
		Hits *struct {
			Total number `json:"total"`
		} `json:"hits"`
		Aggregations map[string]*fieldReply `json:"aggregations"`
	}
	if json.Unmarshal(answer.Data[document], &data) != nil || data == nil || data.Hits == nil || q.aggregates && data.Aggregations == nil {
		return nodeResult{errors: "responded with something other than what was requested"}
	}
	return nodeResult{counted: true, hits: int64(data.Hits.Total), fields: data.Aggregations}
}

// aggregate is the requested aggregation of one field.
type aggregate graphql.NetworkField

func (g *aggregate) requests(part string) bool {
	_, asked := g.Parts[part]
	return asked
}

// terms reports whether values or their number are requested: the number is computed from the values.
func (g *aggregate) terms() bool {
	return g.requests("buckets") || g.requests("bucket_count") || g.requests("cardinality")
}

// of returns the name of the field's type as implied by the requested parts; "" for none.
func (g *aggregate) of() string {
	switch {
	case g.terms():
		return termsType
	case len(g.Parts) > 0:
		return numericType
	default:
		return ""
	}
}

// argument returns an argument of a part; nil if it is absent.
func (g *aggregate) argument(part, name string) json.RawMessage {
	raw := g.Parts[part][name]
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// queryBuilder builds the query for one node. All arguments are variables, so that no client input is part of the query text.
type queryBuilder struct {
	fields strings.Builder
	types  map[string]string
	values map[string]json.RawMessage
}

// field adds a field that the node has.
func (w *queryBuilder) field(g *aggregate) {
	if len(g.Parts) == 0 {
		return
	}
	w.fields.WriteString(" " + g.Name + " {")
	if g.terms() {
		// All values are needed, even if few are requested: the most frequent values of all nodes may be rare in one.
		w.fields.WriteString(" buckets { key key_as_string doc_count }")
	}
	if g.requests("stats") {
		w.fields.WriteString(" stats { min max sum count }")
	}
	if g.requests("histogram") {
		w.fields.WriteString(" histogram" + w.argument(g, "histogram", "interval", "Float") + " { buckets { key key_as_string doc_count } }")
	}
	if g.requests("range") {
		w.fields.WriteString(" range" + w.argument(g, "range", "ranges", "[RangesArg]") + " { buckets { key key_as_string doc_count } }")
	}
	w.fields.WriteString(" }")
}

// argument returns an argument of a part, "" if it is absent.
func (w *queryBuilder) argument(g *aggregate, part, name, of string) string {
	raw := g.argument(part, name)
	if raw == nil {
		return ""
	}
	variable := fmt.Sprint("a", len(w.types))
	w.declare(variable, of, raw)
	return "(" + name + ": $" + variable + ")"
}

func (w *queryBuilder) declare(variable, of string, value json.RawMessage) {
	if w.types == nil {
		w.types, w.values = map[string]string{}, map[string]json.RawMessage{}
	}
	w.types[variable], w.values[variable] = of, value
}

// query returns the complete query.
func (w *queryBuilder) query(document string, filter json.RawMessage, r graphql.NetworkRequest) nodeQuery {
	filters := ""
	if filter != nil {
		w.declare("filters", "JSON", filter)
		filters = "filters: $filters"
	}
	text := document + " { hits"
	if filters != "" {
		text += "(" + filters + ")"
	}
	text += " { total }"
	if w.fields.Len() > 0 {
		w.declare("themselves", "Boolean", flag(r.Themselves))
		w.declare("missing", "Boolean", flag(r.Missing))
		text += " aggregations(" + filters + " aggregations_filter_themselves: $themselves include_missing: $missing) {" + w.fields.String() + " }"
	}
	head := "query node"
	if len(w.types) > 0 {
		var declared []string
		for _, name := range slices.Sorted(maps.Keys(w.types)) {
			declared = append(declared, "$"+name+": "+w.types[name])
		}
		head += "(" + strings.Join(declared, ", ") + ")"
	}
	return nodeQuery{Query: head + " { " + text + " } }", Variables: w.values, aggregates: w.fields.Len() > 0}
}

func flag(is bool) json.RawMessage {
	if is {
		return json.RawMessage("true")
	}
	return json.RawMessage("false")
}

// filterFor returns a filter for one node in a form that every node accepts, nil for none. It leaves out the alternatives (members
// of an or, names of a wildcard) with a field that the node lacks. ok is false if nothing is left: no document of the node matches.
// raw is the filter as the client sent it, and is returned unchanged where possible: older nodes know some operators by their
// aliases only. Aggregations of Arranger fail on {}, and on a clause outside of a group.
func filterFor(filter sqon.Filter, raw json.RawMessage, lacks func(name string) bool) (sent json.RawMessage, ok bool) {
	if filter.Root == nil {
		return nil, true
	}
	root := available(filter.Root, lacks)
	if root == nil {
		return nil, false
	}
	if root != filter.Root || slices.ContainsFunc(root.Content, hasEmpty) {
		raw = sqon.Filter{Root: root}.AppendJSON(nil)
	}
	if !root.Group() {
		raw = slices.Concat(json.RawMessage(`{"op":"and","content":[`), raw, json.RawMessage("]}"))
	}
	return raw, true
}

// available returns n without the alternatives with a field that a node lacks, nil if none is left, and n itself if the node lacks
// none. A not must be complete: without a part of its content it would match more.
func available(n *sqon.Node, lacks func(name string) bool) *sqon.Node {
	if n.Pivot != "" && lacks(n.Pivot) {
		return nil
	}
	out := *n
	if !n.Group() {
		out.Fields = slices.DeleteFunc(slices.Clone(n.Fields), lacks)
		switch len(out.Fields) {
		case len(n.Fields):
			return n
		case 0:
			return nil
		}
		return &out
	}
	out.Content = nil
	for _, member := range n.Content {
		rest := available(member, lacks)
		switch {
		case rest == nil && n.Op == sqon.Or:
			continue
		case rest == nil, rest != member && n.Op == sqon.Not:
			return nil
		}
		out.Content = append(out.Content, rest)
	}
	switch {
	case slices.Equal(out.Content, n.Content):
		return n
	case len(out.Content) == 0:
		return nil
	}
	return &out
}

// hasEmpty reports whether a group without content is in n. It may have been {} or null, which Arranger accepts only in place of the
// whole filter; sqon writes it as a group.
func hasEmpty(n *sqon.Node) bool {
	return n.Group() && (len(n.Content) == 0 || slices.ContainsFunc(n.Content, hasEmpty))
}
