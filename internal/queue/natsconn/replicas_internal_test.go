package natsconn

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/tools/queuetest"
)

// TestReplicasOfExisting: without configuration an existing stream keeps more replicas than the default, and fewer only if the cluster
// refuses more.
func TestReplicasOfExisting(t *testing.T) {
	const name = "S"
	for title, tt := range map[string]struct {
		existing, configured int
		// possible is how many replicas the cluster has servers for.
		possible int
		sent     []int
		logged   string
	}{
		"new":                  {0, 0, 3, []int{3}, ""},
		"as the default":       {3, 0, 3, []int{3}, ""},
		"fewer":                {1, 0, 3, []int{3}, "replicas of a stream were increased"},
		"more":                 {5, 0, 5, []int{5}, ""},
		"too few servers":      {1, 0, 2, []int{3, 1}, "a stream has fewer replicas than it should"},
		"configured as fewer":  {3, 1, 3, []int{1}, "replicas of a stream were reduced"},
		"configured too large": {1, 3, 2, []int{3}, ""},
	} {
		t.Run(title, func(t *testing.T) {
			var log strings.Builder
			c := dialPlain(t, slog.New(slog.NewTextHandler(&log, nil)))
			var sent []int
			exists := tt.existing > 0
			_, err := c.NC.Subscribe("$JS.API.STREAM.*."+name, func(m *nats.Msg) {
				verb := strings.Split(m.Subject, ".")[3]
				var cfg jetstream.StreamConfig
				if verb == "INFO" {
					cfg = jetstream.StreamConfig{Name: name, Replicas: tt.existing}
				} else if err := json.Unmarshal(m.Data, &cfg); err != nil {
					t.Error(err)
				}
				answer, err := json.Marshal(map[string]any{"config": cfg})
				switch {
				case err != nil:
					t.Error(err)
				case verb != "CREATE" && !exists:
					answer = fmt.Appendf(nil, `{"error": {"code": 404, "err_code": %d, "description": "none"}}`, jetstream.JSErrCodeStreamNotFound)
				case verb != "INFO":
					sent = append(sent, cfg.Replicas)
					if cfg.Replicas > tt.possible {
						answer = fmt.Appendf(nil, `{"error": {"code": 400, "err_code": %d, "description": "no peers"}}`, errCodeNoPeers)
					}
				}
				if err := m.Respond(answer); err != nil {
					t.Error(err)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.createStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{"s"}, Replicas: tt.configured})
			if refused := tt.sent[len(tt.sent)-1] > tt.possible; (err != nil) != refused {
				t.Errorf("got %v", err)
			}
			if !slices.Equal(sent, tt.sent) {
				t.Errorf("replicas sent: %v, want %v", sent, tt.sent)
			}
			if got := strings.Count(log.String(), "replicas"); (got > 0) != (tt.logged != "") || !strings.Contains(log.String(), tt.logged) {
				t.Errorf("logged %q, want %q", log.String(), tt.logged)
			}
		})
	}
}

// TestRaiseReplicas: streams get their replicas as soon as the cluster has enough servers, unless a number is configured.
func TestRaiseReplicas(t *testing.T) {
	c := dialPlain(t, slog.New(slog.DiscardHandler))
	keeper := replicaKeeper{nc: c.NC, js: c.JS, log: c.Log, streams: []jetstream.StreamConfig{{Name: "A"}, {Name: "B", Replicas: 1}, {Name: "C"}}}
	var mu sync.Mutex
	replicas, possible := map[string]int{"A": 1, "B": 1, "C": 5}, 2
	if _, err := c.NC.Subscribe("$JS.API.STREAM.*.*", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		parts := strings.Split(m.Subject, ".")
		cfg := jetstream.StreamConfig{Name: parts[4], Replicas: replicas[parts[4]]}
		if parts[3] == "UPDATE" {
			if err := json.Unmarshal(m.Data, &cfg); err != nil {
				t.Error(err)
			}
		}
		answer, err := json.Marshal(map[string]any{"config": cfg})
		if err != nil {
			t.Error(err)
		}
		if cfg.Replicas > max(possible, replicas[parts[4]]) {
			answer = fmt.Appendf(nil, `{"error": {"code": 400, "err_code": %d, "description": "no peers"}}`, errCodeNoPeers)
		} else {
			replicas[parts[4]] = cfg.Replicas
		}
		if err := m.Respond(answer); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		possible int
		all      bool
		want     string
	}{{2, false, "map[A:1 B:1 C:5]"}, {3, true, "map[A:3 B:1 C:5]"}} {
		mu.Lock()
		possible = tt.possible
		mu.Unlock()
		all := keeper.raiseAll(t.Context())
		mu.Lock()
		if got := fmt.Sprint(replicas); all != tt.all || got != tt.want {
			t.Errorf("with %d servers %s, all have theirs: %t", tt.possible, got, all)
		}
		mu.Unlock()
	}
}

// dialPlain returns a connection to a server of a cluster that has no JetStream.
func dialPlain(t *testing.T, log *slog.Logger) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), ConnConfig{URL: queuetest.ServePlain(t), StartTimeout: time.Minute, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Disconnect(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return c
}
