package check

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"tutti/internal/upstream"
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
		reason, hint := upstream.ConnectionFailure(err)
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
