package kafka_test

import (
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tutti/internal/core"
)

// TestRightWithdrawn: health, the metric and the log say that reading is not authorized for as long as it is not, wherever the
// brokers say so first, and messages are read once it is again.
func TestRightWithdrawn(t *testing.T) {
	for name, fault := range map[string]kfake.Fault{
		"to read":                {Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.TopicAuthorizationFailed, Count: -1},
		"to describe it":         {Keys: []kmsg.Key{kmsg.ListOffsets}, Err: kerr.TopicAuthorizationFailed, Count: -1},
		"to read its commits":    {Keys: []kmsg.Key{kmsg.OffsetFetch}, Err: kerr.TopicAuthorizationFailed, Count: -1},
		"to read a commit of it": {Keys: []kmsg.Key{kmsg.OffsetFetch}, Partitions: []int32{1}, Err: kerr.TopicAuthorizationFailed, Count: -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, b := fake(t, 2)
			want := b.produce(t, 2, "a", "b")
			o, h := b.observed(), &handler{}
			r := start(t, o.Config, h)
			eventually(t, "the first messages", func() bool { return h.holds(want) })
			o.awaitUp(t, r)
			withdrawn := cluster.Fault(fault)
			if fault.Keys[0] == kmsg.OffsetFetch {
				stop(t, r)
				o = b.observed()
				r = start(t, o.Config, h)
			}
			want = b.produce(t, 2, "c", "d")
			o.awaitDown(t, r, `reading the Kafka topic "song-analysis" is not authorized`)
			ups := o.log.count("a Kafka topic is up")
			rejected := withdrawn.Hits()
			eventually(t, "further attempts", func() bool { return withdrawn.Hits() >= rejected+3 })
			if err := r.Health(); err == nil || o.log.count("a Kafka topic is up") != ups {
				t.Errorf("while it is not authorized, health is %v", err)
			}
			withdrawn.Remove()
			eventually(t, "the messages", func() bool { return h.holds(want) })
			o.awaitUp(t, r)
		})
	}
}

// TestRefusedCommits: refused commits are repeated with backoff, and said once.
func TestRefusedCommits(t *testing.T) {
	cluster, b := fake(t, 1)
	var mu sync.Mutex
	var refused []time.Time
	fault := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: kerr.TopicAuthorizationFailed, Count: -1, When: func(kmsg.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		refused = append(refused, time.Now())
		return true
	}})
	o, h := b.observed(), &handler{}
	o.RetryMin, o.RetryMax = 10*time.Millisecond, time.Hour
	r := start(t, o.Config, h)
	want := b.produce(t, 1, "a")
	o.awaitDown(t, r, "Kafka rejects the commits of offsets")
	eventually(t, "the message", func() bool { return h.holds(want) })
	const n = 7
	eventually(t, "further commits", func() bool {
		b.produce(t, 1, "b") // which is no reason to commit sooner
		mu.Lock()
		defer mu.Unlock()
		return len(refused) >= n
	})
	mu.Lock()
	for i, least := 1, o.RetryMin/2; i < n; i, least = i+1, 2*least {
		if pause := refused[i].Sub(refused[i-1]); pause < least {
			t.Errorf("commit %d was repeated after %s, want %s at least", i, pause, least)
		}
	}
	mu.Unlock()
	fault.Remove()
	o.awaitUp(t, r)
	if n := o.log.count("WARN"); n != 1 {
		t.Errorf("%d warnings, want 1", n)
	}
}

// TestSessionTimeoutOfBrokers: brokers that demand a longer session timeout get one.
func TestSessionTimeoutOfBrokers(t *testing.T) {
	_, b := fake(t, 1, kfake.GroupMinSessionTimeout(20*time.Second))
	want := b.produce(t, 1, "a")
	o, h := b.observed(), &handler{}
	r := start(t, o.Config, h)
	eventually(t, "the message", func() bool { return h.holds(want) })
	o.awaitUp(t, r)
	if n := o.log.count("the brokers reject the session timeout", "rejected=12s"); n != 1 {
		t.Errorf("%d log lines, want 1", n)
	}
	if err := r.Health(); core.CodeOf(err) != "" {
		t.Error(err)
	}
}
