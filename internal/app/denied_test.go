package app_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"tutti/internal/core"
)

// TestRefusedRight: what an external queue refuses for a missing right while tutti runs is named in /ready with the right to grant, and
// nothing is lost: what waited for it is done once the right is there.
func TestRefusedRight(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	options := func(denied ...string) *natsserver.Options {
		user := &natsserver.User{Username: "tutti", Password: "p4ss", Permissions: &natsserver.Permissions{
			Publish: &natsserver.SubjectPermission{Allow: []string{">"}, Deny: denied},
		}}
		return &natsserver.Options{
			Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true, Users: []*natsserver.User{user},
		}
	}
	server, err := natsserver.NewServer(options("tutti.dead.>"))
	if err != nil {
		t.Fatal(err)
	}
	server.Start()
	t.Cleanup(func() { server.Shutdown(); server.WaitForShutdown() })
	if !server.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	w := startWorld(t, settings{queueURL: strings.Replace(server.ClientURL(), "nats://", "nats://tutti:p4ss@", 1)})
	w.put("S1", "right", `"donor":{"age":7}`)
	w.run("", "", core.JobSucceeded)
	w.put("S1", "wrong", `"donor":{"age":"old"}`)
	w.trigger("S1", "wrong")
	w.eventually(wait, func() (bool, string) {
		ready := w.mustRequest(http.MethodGet, "/ready", http.StatusOK)
		reason := ready.get("reasons.0").String()
		return strings.HasPrefix(reason, `queue: the server does not let this user publish to "tutti.dead.`) && strings.Contains(reason, "; grant the user ") &&
			ready.get("components.queue").String() == "degraded", string(ready.raw)
	})
	if strings.Contains(string(w.mustRequest(http.MethodGet, "/ready", http.StatusOK).raw), "p4ss") {
		t.Error("/ready has the password")
	}
	rights := options()
	rights.Port = natsserver.RANDOM_PORT
	if err := server.ReloadOptions(rights); err != nil {
		t.Fatal(err)
	}
	if letter := w.awaitDeadLetters("", 1)[0]; letter.Get("recordId").String() != "wrong" {
		t.Errorf("the dead letter is %s", letter.Raw)
	}
}
