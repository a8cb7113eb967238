package federation

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"tutti/internal/core"
)

// Types of the fields that can be aggregated.
const (
	termsType   = "Aggregations"
	numericType = "NumericAggregations"
)

// jitter is the maximum part of a pause that is randomly subtracted, so that simultaneous failures are not retried
// simultaneously.
const jitter = 0.2

// typeQuery requests the fields of a type.
const typeQuery = `query fields($name: String!) { __type(name: $name) { name fields { name type { name } } } }`

// discover queries the fields that a remote can aggregate. CodeUnsupported if it does not allow introspection; otherwise errors
// are those of call.
func (c *client) discover(ctx context.Context, r *remote) (map[string]string, error) {
	name, err := json.Marshal(r.documentType + "Aggregations")
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "the query could not be encoded", err)
	}
	answer, err := c.call(ctx, r, http.Header{}, nodeQuery{Query: typeQuery, Variables: map[string]json.RawMessage{"name": name}})
	if core.CodeOf(err) == core.CodeUnauthenticated {
		return nil, &core.Error{
			Code: core.CodeUnauthenticated, Message: core.MessageOf(err), Err: err,
			Hint: "the fields of a node are requested without a token: give the node's catalogue an access.json, or set auth.defaultAccess: public there",
		}
	}
	if err != nil {
		return nil, err
	}
	var found *struct {
		Fields []struct {
			Name string `json:"name"`
			Type struct {
				Name string `json:"name"`
			} `json:"type"`
		} `json:"fields"`
	}
	raw, asked := answer.Data["__type"]
	if asked && json.Unmarshal(raw, &found) != nil {
		return nil, core.NewError(core.CodeUpstream, "responded with something that is not the fields of a type")
	}
	switch {
	case found != nil:
	case answer.introspectionOff():
		return nil, &core.Error{
			Code: core.CodeUnsupported, Message: "does not allow GraphQL introspection, by which its fields are discovered; the next discovery is when this server restarts",
			Hint: `set "disableGraphQLIntrospection": false in the base.json of the node's catalogue and restart it, then restart this server`,
		}
	case len(answer.Errors) > 0 || !asked:
		return nil, answer.errorOf(r.secrets(nil))
	default:
		return nil, &core.Error{
			Code: core.CodeUpstream, Message: "has no type " + r.documentType + "Aggregations",
			Hint: "set documentType to the name of the node's root field, and see that the node allows GraphQL introspection",
		}
	}
	fields := map[string]string{}
	for _, f := range found.Fields {
		if of := f.Type.Name; isName(f.Name) && (of == termsType || of == numericType) {
			fields[f.Name] = of
		}
	}
	return fields, nil
}

// watch updates the fields of a remote until ctx ends, or until it reports that it does not allow introspection.
func (f *Federation) watch(ctx context.Context, r *remote) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for tries := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		fields, err := f.client.discover(ctx, r)
		if ctx.Err() != nil {
			return
		}
		changed := r.update(fields, err)
		f.report(r, len(fields), changed, err)
		if changed {
			f.cfg.Changed(r.catalogue)
		}
		pause := f.cfg.RefreshEvery
		switch core.CodeOf(err) {
		case core.CodeUnsupported:
			if _, why := r.availableFields(); why != nil {
				return
			}
			tries = 0
		case core.CodeUnavailable, core.CodeOverloaded:
			pause = min(f.cfg.FirstRetry<<min(tries, 16), f.cfg.LastRetry)
			tries++
		default:
			tries = 0
		}
		timer.Reset(pause - time.Duration(f.cfg.Random()*jitter*float64(pause)))
	}
}

// report logs the result of a discovery if it is new, and updates the metrics.
func (f *Federation) report(r *remote, fields int, changed bool, err error) {
	f.cfg.Metrics.show(r, err == nil)
	switch news := r.shouldReport(err) || changed; {
	case !news:
	case err == nil:
		f.cfg.Logger.Info("remote node discovered", "catalogue", r.catalogue, "node", r.label, "fields", fields)
	default:
		f.cfg.Logger.Warn("discovery of a remote node failed", "catalogue", r.catalogue, "node", r.label, "err", err)
	}
}
