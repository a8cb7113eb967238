package connection_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"tutti/ingest/kafka/connection"
	"tutti/internal/core"
)

// TestFailureOfTheLastConnection: a client that retries returns in the end that its time is over; the reason is that of its last connection.
func TestFailureOfTheLastConnection(t *testing.T) {
	c, err := connection.New(connection.Config{Key: "k", Brokers: []string{"b:1"}, SASL: connection.SASL{
		Mechanism: connection.Plain, Username: "u", Password: func() (string, error) { return "p", nil },
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		connected, failed error
		want              string
	}{
		{kerr.SaslAuthenticationFailed, context.DeadlineExceeded, "the Kafka brokers refuse the credentials"},
		{io.EOF, context.DeadlineExceeded, "a Kafka broker closed the connection while it authenticated this client"},
		{io.EOF, io.EOF, "a Kafka broker closed the connection while it authenticated this client"},
		{nil, kerr.UnsupportedSaslMechanism, "the Kafka brokers do not offer the SASL mechanism PLAIN"},
		{nil, kerr.IllegalSaslState, "the Kafka brokers' port takes no SASL"},
		{nil, context.DeadlineExceeded, ""},
		{nil, io.EOF, ""},
		{kerr.SaslAuthenticationFailed, kerr.TopicAuthorizationFailed, ""},
	} {
		c.OnBrokerConnect(kgo.BrokerMetadata{}, 0, nil, tt.connected)
		failure := c.Failure(tt.failed)
		if tt.want == "" && !errors.Is(failure, tt.failed) || tt.want != "" && (core.MessageOf(failure) != tt.want || core.HintOf(failure) == "") {
			t.Errorf("%v after %v: got %v, want %q", tt.failed, tt.connected, failure, tt.want)
		}
	}
	if c.Failure(nil) != nil {
		t.Error("no error is a failure")
	}
}
