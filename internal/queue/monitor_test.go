package queue_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/tools/queuetest"
)

// monitoring returns the monitoring address of a server.
func monitoring(s *natsserver.Server) string { return "http://" + s.MonitorAddr().String() }

// TestMonitor: the monitoring address and the system account of a real server say whether it syncs every write, with the id that its clients see;
// an address that is neither is an error that names it, without its password.
func TestMonitor(t *testing.T) {
	t.Parallel()
	const accounts = "accounts: {SYS: {users: [{user: admin, password: p4ss}]}, T: {jetstream: enabled, users: [{user: t, password: p4ss}]}}, system_account: SYS\n"
	always := queuetest.Serve(t, t.TempDir(), accounts+"jetstream: {sync_interval: always}")
	later := queuetest.Serve(t, t.TempDir(), accounts+"jetstream: {sync_interval: 10s}")
	as := func(user string, s *natsserver.Server) string {
		return strings.Replace(s.ClientURL(), "nats://", "nats://"+user+":p4ss@", 1)
	}
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	for name, tt := range map[string]struct {
		url    string
		server *natsserver.Server
		always bool
		code   core.Code
		text   string
	}{
		"address":                             {url: monitoring(always), server: always, always: true},
		"address of one that does not":        {url: monitoring(later), server: later},
		"system account":                      {url: as("admin", always), server: always, always: true},
		"system account of one that does not": {url: as("admin", later), server: later},
		"another account":                     {url: as("t", always), code: core.CodeForbidden, text: "does not answer as to the system account"},
		"no account":                          {url: as("stranger", always), code: core.CodeUnauthenticated, text: "does not accept the credentials"},
		"another program":                     {url: other.URL, code: core.CodeUpstream, text: "is not the monitoring address"},
		"nothing":                             {url: "http://127.0.0.1:1", code: core.CodeUnavailable, text: "127.0.0.1:1 does not answer: nothing listens there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reports, failed := queue.Monitor(t.Context(), queue.Config{MonitoringURL: tt.url})
			if tt.text != "" {
				if len(failed) != 1 || len(reports) > 0 || core.CodeOf(failed[0]) != tt.code || !strings.Contains(core.MessageOf(failed[0]), tt.text) ||
					strings.Contains(core.DisplayOf(failed[0]), "p4ss") || strings.Count(failed[0].Error(), tt.text) != 1 {
					t.Errorf("%+v, %v", reports, failed)
				}
				return
			}
			if len(failed) > 0 || len(reports) != 1 || reports[0].ID != tt.server.ID() || reports[0].SyncAlways != tt.always || len(reports[0].Frozen) > 0 ||
				!tt.always && reports[0].SyncInterval != 10*time.Second {
				t.Errorf("%+v, %v", reports, failed)
			}
		})
	}
}
