package kafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"tutti/ingest/kafka/connection"
	"tutti/internal/core"
)

// TestRefusedBeforeTheFirstCheck: what the brokers refuse is said although it ends each session before its first check has ended.
func TestRefusedBeforeTheFirstCheck(t *testing.T) {
	t.Parallel()
	r, err := New(Config{Connection: connection.Config{Brokers: []string{"127.0.0.1:1"}}, Topic: "t", Group: "g"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	says := func(want string) {
		t.Helper()
		if got := core.MessageOf(r.Health()); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	waiting := r.errWaiting(r.cfg.SessionTimeout)
	for refuse, want := range map[string]string{
		"fetch": `reading the Kafka topic "t" is not authorized`, "group": "using the Kafka consumer group is not authorized",
	} {
		r.state.start(waiting)
		says("no Kafka broker has answered yet")
		if refuse == "fetch" {
			r.state.setFetch(r.topicError(kerr.TopicAuthorizationFailed))
		} else {
			r.state.setGroup(r.groupError(kerr.GroupAuthorizationFailed))
		}
		says(want)
		r.state.noteWaiting(waiting) // the next session
		says(want)
		r.state.change(func(c *conditions) { c.check = r.brokerError(errEnded) })
		says("no Kafka broker answers")
		r.state.setFetch(nil)
		says("no Kafka broker answers")
	}
}
