//go:build services

package kafka_test

import (
	"os"
	"strings"
	"testing"
)

// TestReaderOnRealBroker runs the suite on the broker that deploy/local/kafka/start starts; it prints
// TUTTI_TEST_KAFKA_BROKERS.
func TestReaderOnRealBroker(t *testing.T) {
	addresses := os.Getenv("TUTTI_TEST_KAFKA_BROKERS")
	if addresses == "" {
		t.Fatal("TUTTI_TEST_KAFKA_BROKERS is not set; deploy/local/kafka/start prints it")
	}
	suite(t, func(t *testing.T, partitions int32) broker {
		b := freshTopic(t, strings.Split(addresses, ","), partitions)
		b.compact = func() {}
		return b
	})
}
