package federation

import (
	"context"
	"encoding/json"
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
	a := federatedQuery{Federation: f, request: r, filter: filter, fields: aggregates(r.Fields)}
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
			answer.Aggregations[field.name] = merged
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
		name = strings.ReplaceAll(name, ".", "__")
		return slices.Contains(a.request.Named, name) && !contains(fields, name)
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
	q := a.query(a.request.Document, filters, func(g *aggregate) bool { return a.request.Own(g.name) })
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
	q := a.query(r.documentType, filters, func(g *aggregate) bool { return fields[g.name] == g.of() })
	header := forwardedHeaders(r.headers, a.request.Header)
	start := time.Now()
	answer, err := a.client.call(ctx, r, header, q)
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
		return nodeResult{errors: "responded with something else than what was requested"}
	}
	return nodeResult{counted: true, hits: int64(data.Hits.Total), fields: data.Aggregations}
}
