package elastic_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tutti/internal/core"
)

const (
	shardOf   = `{"routing":{"state":%q,"primary":%t},"seq_no":{"max_seq_no":%d}}`
	indexOf   = `"a-%d":{"uuid":"U%[1]d","shards":{%s}}`
	setting   = `"a-%d":{"settings":{"index":{"uuid":"U%[1]d","number_of_shards":"%d"}}}`
	noSeqNo   = `{"routing":{"state":"STARTED","primary":true}}`
	recovery  = "INITIALIZING"
	relocates = "RELOCATING"
	started   = "STARTED"
)

func shard(state string, primary bool, highest int) string {
	return fmt.Sprintf(shardOf, state, primary, highest)
}

// TestCheckpointNeedsEveryPrimary: a document of a primary that does not answer may have a higher sequence number than all that
// are known, and a sweep up to that checkpoint would not see it.
func TestCheckpointNeedsEveryPrimary(t *testing.T) {
	two := fmt.Sprintf(setting, 1, 2)
	tests := []struct {
		name, settings string
		failed         int
		shards         string
		want           string
	}{
		{"all primaries", two, 0, `"0":[` + shard(started, true, 7) + `],"1":[` + shard(started, true, 41) + `]`, "U1/41"},
		{"nothing written", two, 0, `"0":[` + shard(started, true, -1) + `],"1":[` + shard(started, true, -1) + `]`, core.CheckpointNone},
		{"a primary that moves", two, 0, `"0":[` + shard(relocates, true, 7) + `,` + shard(recovery, true, 3) + `],"1":[` +
			shard(started, true, 1) + `]`, "U1/7"},
		{"a replica is ahead", two, 0, `"0":[` + shard(started, true, 7) + `,` + shard(started, false, 9) + `],"1":[` +
			shard(started, true, 1) + `]`, "U1/9"},
		{"an unassigned primary", two, 0, `"0":[` + shard(started, true, 7) + `]`, ""},
		{"only its replica answers", two, 0, `"0":[` + shard(started, true, 7) + `],"1":[` + shard(started, false, 41) + `]`, ""},
		{"a primary that recovers", two, 0, `"0":[` + shard(started, true, 7) + `],"1":[` + shard(recovery, true, 3) + `]`, ""},
		{"a primary without a number", two, 0, `"0":[` + shard(started, true, 7) + `],"1":[` + noSeqNo + `]`, ""},
		{"a shard failed", two, 1, `"0":[` + shard(started, true, 7) + `],"1":[` + shard(started, true, 41) + `]`, ""},
		{"an index with another identity", fmt.Sprintf(setting, 2, 1), 0, `"0":[` + shard(started, true, 7) + `]`, ""},
		{"no settings", "", 0, `"0":[` + shard(started, true, 7) + `]`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := open(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "_settings") {
					_, _ = fmt.Fprintf(w, `{%s}`, tt.settings)
					return
				}
				_, _ = fmt.Fprintf(w, `{"_shards":{"failed":%d},"indices":{%s}}`, tt.failed, fmt.Sprintf(indexOf, 1, tt.shards))
			}))
			if got, err := x.Checkpoint(t.Context(), "a"); got != tt.want || err != nil {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// TestCheckNeedsEveryPrimary: an index of which one primary is missing takes no writes, although Check's own went to
// another. Credentials that may not ask for the shards are no fault of the index.
func TestCheckNeedsEveryPrimary(t *testing.T) {
	one, two := shard(started, true, 7), fmt.Sprintf(setting, 1, 2)
	tests := []struct {
		name, settings, shards string
		want                   core.Code
	}{
		{"all primaries", two, `"0":[` + one + `],"1":[` + one + `]`, ""},
		{"an unassigned primary", two, `"0":[` + one + `]`, core.CodeUnavailable},
		{"only its replica answers", two, `"0":[` + one + `],"1":[` + shard(started, false, 7) + `]`, core.CodeUnavailable},
		{"one shard", fmt.Sprintf(setting, 1, 1), "", ""},
		{"several indices", two + "," + fmt.Sprintf(setting, 2, 2), "", core.CodeConflict},
		{"settings are forbidden", "", "", ""},
		{"statistics are forbidden", two, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := open(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
				switch _, api, _ := strings.Cut(r.URL.Path, "_"); {
				case api == "bulk":
					_, _ = w.Write([]byte(`{"items":[{"index":{"status":409,"error":{"type":"version_conflict_engine_exception"}}}]}`))
				case api == "settings" && tt.settings != "":
					_, _ = fmt.Fprintf(w, `{%s}`, tt.settings)
				case api == "stats" && tt.shards != "":
					_, _ = fmt.Fprintf(w, `{"indices":{%s}}`, fmt.Sprintf(indexOf, 1, tt.shards))
				default:
					w.WriteHeader(http.StatusForbidden)
				}
			}))
			if err := x.Check(t.Context(), "a"); core.CodeOf(err) != tt.want {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
