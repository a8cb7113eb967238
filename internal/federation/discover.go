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

// jitter is the greatest part of a pause that is left out by chance, so that what failed together is not tried together.
const jitter = 0.2

// typeQuery asks for the fields of a type.
const typeQuery = `query fields($name: String!) { __type(name: $name) { name fields { name type { name } } } }`

// discover asks a remote which fields it can aggregate. CodeUnsupported when it allows no introspection, else as call.
func (c *client) discover(ctx context.Context, r *remote) (map[string]string, error) {
	name, err := json.Marshal(r.documentType + "Aggregations")
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "the question could not be written", err)
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
		return nil, core.NewError(core.CodeUpstream, "answered with something that is not the fields of a type")
	}
	switch {
	case found != nil:
	case answer.introspectionOff():
		return nil, &core.Error{
			Code: core.CodeUnsupported, Message: "does not allow GraphQL introspection, which tells its fields; it is asked again when this server restarts",
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

// watch keeps what is known of a remote true until ctx ends, or nothing more is to be found out.
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

// report logs what came of a discovery where that is new, and shows it in the metrics.
func (f *Federation) report(r *remote, fields int, changed bool, err error) {
	f.cfg.Metrics.show(r, err == nil)
	switch news := r.shouldReport(err) || changed; {
	case !news:
	case err == nil:
		f.cfg.Logger.Info("remote node found", "catalogue", r.catalogue, "node", r.label, "fields", fields)
	default:
		f.cfg.Logger.Warn("remote node not found out about", "catalogue", r.catalogue, "node", r.label, "err", err)
	}
}
