package federation

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"tutti/internal/core"
	"tutti/internal/graph"
	"tutti/internal/search"
)

// Values of the status of a node.
const (
	statusOK    = "OK"
	statusError = "ERROR"
)

// nodeResult is what a node answered.
type nodeResult struct {
	// counted is set when it answered without errors; hits are the documents and fields the aggregations of its answer.
	counted bool
	hits    int64
	fields  map[string]*fieldReply
	// errors is what is shown of what went wrong, "" when nothing did.
	errors string
}

// Query asks the nodes that are chosen side by side, and adds up what they say. An error is CodeInvalid for a catalogue without a
// network, and CodeUnavailable when ctx ends first.
func (f *Federation) Query(ctx context.Context, view *search.View, r graph.NetworkRequest) (graph.NetworkAnswer, error) {
	n := f.networkFor(view.Model().Definition())
	if n == nil {
		return graph.NetworkAnswer{}, core.NewError(core.CodeInvalid, "this catalogue is not part of a network")
	}
	r.Filters = asGroup(r.Filters)
	a := federatedQuery{Federation: f, request: r, fields: aggregates(r.Fields)}
	all := make([]nodeResult, len(n.nodes))
	var asked sync.WaitGroup
	for i, one := range n.nodes {
		asked.Go(func() { all[i] = a.node(ctx, one) })
	}
	asked.Wait()
	if err := ctx.Err(); err != nil {
		return graph.NetworkAnswer{}, core.WrapError(core.CodeUnavailable, "request timed out before all nodes responded", err)
	}
	answer := graph.NetworkAnswer{Nodes: make([]graph.NetworkNode, len(all)), Aggregations: map[string]json.RawMessage{}}
	for i, one := range all {
		answer.Nodes[i] = graph.NetworkNode{ID: n.nodes[i].id, Name: n.nodes[i].name, Hits: one.hits, Status: statusOK, Errors: one.errors}
		if one.errors != "" {
			answer.Nodes[i].Status = statusError
		}
	}
	for _, field := range a.fields {
		merged, err := field.merged(all)
		if err != nil {
			return graph.NetworkAnswer{}, err
		}
		if merged != nil {
			answer.Aggregations[field.name] = merged
		}
	}
	return answer, nil
}

// federatedQuery is one question to all nodes.
type federatedQuery struct {
	*Federation

	request graph.NetworkRequest
	fields  []*aggregate
}

// node asks one node. One that is not chosen is listed as it is known to be.
func (a *federatedQuery) node(ctx context.Context, n *node) nodeResult {
	chosen := n.selected(a.request.Nodes)
	if n.remote == nil {
		switch {
		case !chosen:
			return nodeResult{}
		case a.request.Lacking:
			return nodeResult{counted: true}
		default:
			return a.local(ctx)
		}
	}
	fields, why := n.remote.availableFields()
	switch {
	case why != nil:
		return nodeResult{errors: core.MessageOf(why)}
	case !chosen:
		return nodeResult{}
	case lacks(fields, a.request.Named):
		return nodeResult{counted: true}
	default:
		return a.remote(ctx, n.remote, fields)
	}
}

// lacks reports whether a node that aggregates fields has none of one of the names, nor below it. No document of such a node
// matches a filter on these names, whatever the filter asks of them.
func lacks(fields map[string]string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		for field := range fields {
			if field == name || strings.HasPrefix(field, name+"__") {
				return false
			}
		}
		return true
	})
}

// local asks this process' own catalogue, as the client sees it. What is wrong there can be told: it is as a client is told it.
func (a *federatedQuery) local(ctx context.Context) nodeResult {
	q := a.query(a.request.Document, func(g *aggregate) bool { return a.request.Own(g.name) })
	variables, err := json.Marshal(q.Variables)
	if err != nil {
		return nodeResult{errors: "the question could not be written"}
	}
	response := a.request.Local(ctx, core.GraphQLRequest{Query: q.Query, Variables: variables, ReadOnly: true})
	answer, ok := replyOf(response.Body)
	if !ok {
		return nodeResult{errors: "the catalogue gave no answer"}
	}
	return resultOf(q, answer, a.request.Document, answer.errorTexts())
}

// remote asks another server for the fields that it has.
func (a *federatedQuery) remote(ctx context.Context, r *remote, fields map[string]string) nodeResult {
	q := a.query(r.documentType, func(g *aggregate) bool { return fields[g.name] == g.of() })
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

// query writes what a node is asked, of the fields that it has.
func (a *federatedQuery) query(document string, has func(*aggregate) bool) nodeQuery {
	var w queryBuilder
	for _, field := range a.fields {
		if has(field) {
			w.field(field)
		}
	}
	return w.query(document, a.request)
}

// resultOf reads an answer. errors is what is shown of its errors: a node that has any is counted with none of its documents, so that
// its hits and the aggregations of the network agree.
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
		return nodeResult{errors: "answered with something that is not what it was asked for"}
	}
	return nodeResult{counted: true, hits: int64(data.Hits.Total), fields: data.Aggregations}
}
