package check

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/upstream"
)

// neededPrivileges are what tutti does with an index and its alias.
func neededPrivileges() []string {
	return []string{"create_index", "manage", "read", "view_index_metadata", "write"}
}

// alias looks at the alias of a repository, and at what this user may do with it.
func (e *engine) alias(ctx context.Context, name string) Finding {
	subject := subjectIndex + " " + name
	a, err := e.node.Alias(ctx, name)
	if err != nil {
		reason, hint := upstream.ConnectionFailure(err)
		return Finding{subject, StatusFail, "not known: " + reason, hint}
	}
	if f, refused := e.refused(e.host, "look at aliases", a); refused {
		f.Subject = subject
		return f
	}
	f := Finding{Subject: subject, Status: StatusOK}
	var indices map[string]json.RawMessage
	switch {
	case a.Status == http.StatusOK && json.Unmarshal(a.Body, &indices) == nil && len(indices) > 1:
		return Finding{subject, StatusFail, fmt.Sprintf("the alias stands for %d indices, tutti needs it to stand for one", len(indices)), "remove the alias from all but one of them"}
	case a.Status == http.StatusOK:
		for physical := range indices {
			f.Message = "the alias is there and stands for " + physical
		}
	default:
		if e.isIndex(ctx, name) {
			return Finding{
				subject, StatusFail, "an index has this name, which tutti needs for an alias",
				"choose another indexName, or copy the index to another name (POST /_reindex) and remove it",
			}
		}
		f.Message = "will be made"
	}
	if missing := e.missing(ctx, name); len(missing) > 0 {
		return Finding{
			subject, StatusFail, "this user lacks privileges: " + strings.Join(missing, ", "),
			fmt.Sprintf("give the user's role these privileges on %s and %s-*", name, name),
		}
	}
	return f
}

func (e *engine) isIndex(ctx context.Context, name string) bool {
	a, err := e.node.Exists(ctx, name)
	return err == nil && a.Status == http.StatusOK
}

// missing gives the privileges that this user lacks; none where the cluster has no security or does not say.
func (e *engine) missing(ctx context.Context, name string) []string {
	body, err := json.Marshal(map[string]any{
		"index": []any{map[string]any{"names": []string{name, name + "-*"}, "privileges": neededPrivileges()}},
	})
	if err != nil {
		return nil
	}
	a, err := e.node.Privileges(ctx, body)
	var said struct {
		Index map[string]map[string]bool `json:"index"`
	}
	if err != nil || a.Status != http.StatusOK || json.Unmarshal(a.Body, &said) != nil {
		return nil
	}
	var missing []string
	for _, p := range neededPrivileges() {
		for _, of := range said.Index {
			if has, told := of[p]; told && !has {
				missing = append(missing, p)
			}
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// unindexed returns a warning when the index of a repository that does not index itself holds no document of it.
func (e *engine) unindexed(ctx context.Context, r config.Repository) []Finding {
	if r.Type == core.TypeLocal {
		return nil
	}
	of := func(field string) any { return map[string]any{"term": map[string]any{field: r.Code}} }
	body, err := json.Marshal(map[string]any{"query": map[string]any{"bool": map[string]any{
		"should": []any{of("repositories.code"), of("repositories.code.keyword")}, // of tutti's mapping, and of one with dynamic strings
	}}})
	if err != nil {
		return nil
	}
	a, err := e.node.Count(ctx, r.IndexName, body)
	var said struct {
		Count *int64 `json:"count"`
	}
	f := Finding{subjectIndex + " " + r.IndexName, StatusWarn, "", "run tutti index " + r.Code}
	switch {
	case err != nil:
		return nil
	case a.Status == http.StatusNotFound:
		f.Message = "the repository " + r.Code + " was never indexed"
	case a.Status == http.StatusOK && json.Unmarshal(a.Body, &said) == nil && said.Count != nil && *said.Count == 0:
		f.Message = "the index holds no document of the repository " + r.Code
	default:
		return nil
	}
	return []Finding{f}
}
