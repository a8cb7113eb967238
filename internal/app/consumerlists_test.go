package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/tools/queuetest"
)

// TestConsumersAreListedSeldom: the queue's server lists its consumers once at a start, which removes those of unknown repositories, and for
// each search for requests that are not delivered, of which at most one runs in 2 s: not for each organization, request or poll.
func TestConsumersAreListedSeldom(t *testing.T) {
	t.Parallel()
	const organizations, polls = 60, 40
	url := queuetest.Serve(t, t.TempDir(), "").ClientURL() // without rights, which do not let a user read the audit
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	var names, lists, others atomic.Int64
	_, err = nc.Subscribe("$JS.EVENT.ADVISORY.API", func(m *nats.Msg) { // the server's audit of its API
		switch subject := gjson.GetBytes(m.Data, "subject").String(); {
		case strings.HasPrefix(subject, "$JS.API.CONSUMER.NAMES."):
			names.Add(1)
		case strings.HasPrefix(subject, "$JS.API.CONSUMER.LIST."):
			lists.Add(1)
		default:
			others.Add(1)
		}
	})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	w := startWorld(t, settings{queueURL: url})
	for i := range organizations {
		organization := fmt.Sprintf("S%d", i)
		w.trigger(organization, w.fill(organization, 1)[0])
	}
	w.run("", "", core.JobSucceeded)
	w.wantConverged()
	for i := range polls {
		for _, path := range []string{"/ready", "/jobs", "/repositories", "/metrics", "/dead-letters", fmt.Sprintf("/studies/S%d", i)} {
			if _, err := w.request(http.MethodGet, path); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	searches := 1 + int64(time.Since(began)/(2*time.Second))
	t.Logf("%d lists of names, %d of consumers, %d other calls", names.Load(), lists.Load(), others.Load())
	if names.Load() != 1 || lists.Load() < 1 || lists.Load() > searches || others.Load() < 10 {
		t.Errorf("%d lists of names, want 1; %d of consumers, want 1 to %d; %d other calls", names.Load(), lists.Load(), searches, others.Load())
	}
}
