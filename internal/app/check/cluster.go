package check

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic"
)

// health checks the cluster's health and licence. Missing privileges are only a warning: tutti does not need this information.
func (e *engine) health(ctx context.Context) []Finding {
	var found []Finding
	var health struct {
		Status     string `json:"status"`
		Unassigned int    `json:"unassigned_shards"`
	}
	switch a, err := e.node.Health(ctx); {
	case err != nil:
		reason, hint := tlsconfig.Failure(err)
		found = append(found, Finding{subjectIndex, StatusFail, "the health of the cluster cannot be read: " + reason, hint})
	case json.Unmarshal(a.Body, &health) != nil || health.Status == "":
		f, refused := e.rejected(e.host, "read the health of the cluster", a)
		if !refused {
			f.Message = "the health of the cluster cannot be read"
		}
		f.Status = StatusWarn
		found = append(found, f)
	case health.Status == "red":
		found = append(found, Finding{
			subjectIndex, StatusWarn, fmt.Sprintf("the cluster is red, %s", count(health.Unassigned, "shard is missing", "shards are missing")),
			"see GET /_cluster/allocation/explain; an index whose primary shard is missing accepts no documents",
		})
	default:
		found = append(found, Finding{subjectIndex, StatusOK, "the cluster is " + health.Status, ""})
	}
	return append(found, e.licence(ctx)...)
}

func (e *engine) licence(ctx context.Context) []Finding {
	var licence struct {
		License struct {
			Status string `json:"status"`
			Type   string `json:"type"`
		} `json:"license"`
	}
	a, err := e.node.License(ctx)
	if err != nil || a.Status != http.StatusOK || json.Unmarshal(a.Body, &licence) != nil || licence.License.Status == "" {
		return nil
	}
	if l := licence.License; l.Status != "active" {
		return []Finding{{
			subjectIndex, StatusWarn, fmt.Sprintf("the %s licence of the cluster is %s", l.Type, l.Status),
			"renew it, or return to the basic licence: POST /_license/start_basic",
		}}
	}
	return nil
}

// alias checks the alias of a repository and this user's privileges on it.
func (e *engine) alias(ctx context.Context, code, name string) Finding {
	subject := subjectIndex + " " + name
	a, behind, taken, err := e.node.Alias(ctx, name)
	if err != nil {
		reason, hint := tlsconfig.Failure(err)
		return Finding{subject, StatusFail, "the alias cannot be read: " + reason, hint}
	}
	if f, refused := e.rejected(e.host, "read the alias", a); refused {
		f.Subject = subject
		return f
	}
	f := Finding{Subject: subject, Status: StatusOK}
	switch {
	case len(behind) > 1:
		return Finding{
			subject, StatusFail, "the alias points to several indices, and must point to one: " + strings.Join(behind, ", "),
			"remove the alias from all but the oldest of them: tutti mapping adopt " + code,
		}
	case len(behind) == 1:
		f.Message = "the alias points to " + behind[0]
		if stored, err := e.node.Storage(ctx, name); err == nil && stored.Status == http.StatusOK {
			if physical, why, hint := elastic.Unsuitable(stored.Body); why != "" {
				return Finding{subject, StatusFail, "the alias points to " + physical + ", which cannot be used: " + why, hint}
			}
		}
	case taken == index.NameDataStream:
		return Finding{subject, StatusFail, "a data stream has this name; tutti needs the name for an alias", "choose another indexName"}
	case taken == index.NameIndex:
		return Finding{
			subject, StatusFail, "an index has this name; tutti needs the name for an alias",
			"choose another indexName, or make the index an alias of the same documents: tutti mapping adopt " + code,
		}
	default:
		f.Message = "will be created"
	}
	if missing := e.missing(ctx, name); len(missing) > 0 {
		return Finding{
			subject, StatusFail, "missing privileges: " + strings.Join(missing, ", "),
			fmt.Sprintf("grant the user's role these privileges on %s and %s-*", name, name),
		}
	}
	return f
}

// missing returns the privileges that this user lacks. It returns none when the cluster has no security or does not report them.
func (e *engine) missing(ctx context.Context, name string) []string {
	body, err := json.Marshal(map[string]any{
		"index": []any{map[string]any{"names": []string{name, name + "-*"}, "privileges": e.privileges.Index}},
	})
	if err != nil {
		return nil
	}
	a, err := e.node.Privileges(ctx, body)
	var reply struct {
		Index map[string]map[string]bool `json:"index"`
	}
	if err != nil || a.Status != http.StatusOK || json.Unmarshal(a.Body, &reply) != nil {
		return nil
	}
	var missing []string
	for _, p := range e.privileges.Index {
		for _, granted := range reply.Index {
			if has, reported := granted[p]; reported && !has {
				missing = append(missing, p)
			}
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// unindexed returns a warning when the index holds no document of a repository other than the built-in one.
func (e *engine) unindexed(ctx context.Context, r config.Repository) []Finding {
	if r.Type == core.TypeLocal {
		return nil
	}
	f := Finding{subjectIndex + " " + r.IndexName, StatusWarn, "", "run tutti index " + r.Code}
	term := func(field string) any { return map[string]any{"term": map[string]any{field: r.Code}} }
	either := map[string]any{"bool": map[string]any{"should": []any{ // tutti's mapping; a dynamic mapping
		term("repositories.code"), term("repositories.code.keyword"),
	}}}
	nested := map[string]any{"nested": map[string]any{"path": "repositories", "ignore_unmapped": true, "query": either}}
	for i, query := range []any{either, nested} {
		body, err := json.Marshal(map[string]any{"query": query})
		if err != nil {
			return nil
		}
		a, err := e.node.Count(ctx, r.IndexName, body)
		var reply struct {
			Count *int64 `json:"count"`
		}
		none := err == nil && a.Status == http.StatusOK && json.Unmarshal(a.Body, &reply) == nil && reply.Count != nil && *reply.Count == 0
		switch {
		case err == nil && a.Status == http.StatusNotFound:
			f.Message = "repository " + r.Code + " was never indexed"
			return []Finding{f}
		case err == nil && a.Status == http.StatusBadRequest && i > 0: // the field is an object
		case !none:
			return nil
		}
	}
	f.Message = "the index contains no documents of repository " + r.Code
	return []Finding{f}
}
