//go:build services

package kafka_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
)

// TestReaderOnRealBroker runs the suite on the broker that deploy/local/kafka/start starts; it prints
// TUTTI_TEST_KAFKA_BROKERS.
func TestReaderOnRealBroker(t *testing.T) {
	addresses := os.Getenv("TUTTI_TEST_KAFKA_BROKERS")
	if addresses == "" {
		t.Fatal("TUTTI_TEST_KAFKA_BROKERS is not set; deploy/local/kafka/start prints it")
	}
	fresh := func(t *testing.T, partitions int32) broker {
		b := freshTopic(t, strings.Split(addresses, ","), partitions)
		b.compact = func() {}
		return b
	}
	t.Run("the right to read is withdrawn and returned", func(t *testing.T) {
		t.Parallel()
		withdrawn(t, fresh(t, 2))
	})
	suite(t, fresh)
}

// withdrawn: by the rules of a broker, which decides about the requests of this client only while there is one for the topic.
func withdrawn(t *testing.T, b broker) {
	want := b.produce(t, 2, numbered("before", 10)...)
	o, h := b.observed(), &handler{}
	r := start(t, o.Config, h)
	eventually(t, "the messages before", func() bool { return h.holds(want) })
	eventually(t, "the commit", func() bool { return b.committed(t) == 10 })
	o.awaitUp(t, r)
	rule := func(allows bool) *kadm.ACLBuilder {
		acl := kadm.NewACLs().Topics(b.topic).ResourcePatternType(kadm.ACLPatternLiteral)
		if allows {
			return acl.Allow("User:ANONYMOUS").AllowHosts("*").Operations(kadm.OpAll)
		}
		return acl.Deny("User:ANONYMOUS").DenyHosts("*").Operations(kadm.OpRead)
	}
	for _, allows := range []bool{true, false} {
		made, err := b.admin.CreateACLs(within(t), rule(allows))
		for _, m := range made {
			err = errors.Join(err, m.Err)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	o.awaitDown(t, r, fmt.Sprintf("reading the Kafka topic %q is not authorized", b.topic), "allow this client to read and describe the topic")
	want = append(want, b.produce(t, 2, numbered("denied", 10)...)...)
	if _, err := b.admin.DeleteACLs(within(t), rule(false)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the messages after", func() bool { return h.holds(want) })
	o.awaitUp(t, r)
}
