//go:build services

package kafka_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kadm"
)

// TestReaderOnRealBroker runs the suite on the broker that deploy/local/kafka/start starts; it prints
// TUTTI_TEST_KAFKA_BROKERS.
func TestReaderOnRealBroker(t *testing.T) {
	addresses := os.Getenv("TUTTI_TEST_KAFKA_BROKERS")
	if addresses == "" {
		t.Fatal("TUTTI_TEST_KAFKA_BROKERS is not set; deploy/local/kafka/start prints it")
	}
	suite(t, func(t *testing.T, partitions int32) broker {
		name := "test-" + uuid.NewString()
		b := broker{addresses: strings.Split(addresses, ","), topic: name, group: name}
		admin := kadm.NewClient(b.client(t))
		if _, err := admin.CreateTopic(t.Context(), partitions, 1, nil, b.topic); err != nil {
			t.Fatal(err)
		}
		return b
	})
}
