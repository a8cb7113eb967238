package kafka_test

import (
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestLateCommit: a reader that was expelled while it handled a batch, and has joined anew without a word about that from its client,
// leaves the offset of the member that has had its partition since.
func TestLateCommit(t *testing.T) {
	t.Parallel()
	cluster, b := fake(t, 1)
	b.produce(t, 1, numbered("v", 10)...)
	h := &handler{waiting: make(chan struct{})}
	cfg := b.config()
	cfg.BatchMessages = 10
	r := start(t, cfg, h)
	eventually(t, "a batch in hand", func() bool { return h.refused() > 0 })
	e := expel(t, cluster, b)
	b.produce(t, 1, numbered("w", 90)...)
	for seen := 0; seen < 100; {
		fetches := e.other.PollFetches(within(t))
		if err := fetches.Err0(); err != nil {
			t.Fatal(err)
		}
		seen += fetches.NumRecords()
	}
	if err := e.other.CommitUncommittedOffsets(within(t)); err != nil {
		t.Fatal(err)
	}
	if n := b.committed(t); n != 100 {
		t.Fatalf("the other member has committed %d messages", n)
	}
	e.commits()
	close(h.waiting)
	e.awaitJoin()
	stop(t, r)
	for _, offset := range e.commits() {
		if offset < 100 {
			t.Errorf("the offset was set back to %d", offset)
		}
	}
	if n := b.committed(t); n != 100 {
		t.Errorf("%d messages are committed in the end", n)
	}
}

// expulsion is what follows when a member is expelled.
type expulsion struct {
	// other is the member that has the partitions since.
	other *member
	// awaitJoin waits until the expelled one, which learns of it by that, has joined again.
	awaitJoin func()
	// commits returns the offsets that all but the expelled member, as such, have committed since the last call.
	commits func() []int64
}

// expel expels the group's only member while it handles a batch. Its heartbeats have said last that the group rebalances.
func expel(t *testing.T, cluster *kfake.Cluster, b broker) expulsion {
	group, err := cluster.WaitGroupStable(within(t), b.group, 1)
	if err != nil {
		t.Fatal(err)
	}
	id := group.Members[0].MemberID
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Err: kerr.RebalanceInProgress, Count: -1, When: func(req kmsg.Request) bool {
		return req.(*kmsg.HeartbeatRequest).MemberID == id
	}})
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group = b.group
	leave.Members = []kmsg.LeaveGroupRequestMember{{MemberID: id}}
	if _, err := leave.RequestWith(within(t), b.client(t)); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var offsets []int64
	cluster.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		commit := req.(*kmsg.OffsetCommitRequest)
		mu.Lock()
		defer mu.Unlock()
		if commit.MemberID != id {
			offsets = append(offsets, commit.Topics[0].Partitions[0].Offset)
		}
		return nil, nil, false
	})
	return expulsion{
		other: b.member(t),
		awaitJoin: func() {
			if _, err := cluster.WaitGroupStable(within(t), b.group, 2); err != nil {
				t.Fatal(err)
			}
		},
		commits: func() []int64 {
			mu.Lock()
			defer mu.Unlock()
			defer func() { offsets = nil }()
			return offsets
		},
	}
}
