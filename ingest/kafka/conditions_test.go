package kafka_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tutti/ingest/kafka/connection"
	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
)

// TestRightWithdrawn: health, the metric and the log say that reading is not authorized for as long as it is not, wherever the
// brokers say so first, and messages are read once it is again.
func TestRightWithdrawn(t *testing.T) {
	const (
		ofTopic, hintTopic = `reading the Kafka topic "song-analysis" is not authorized`, "allow this client to read and describe the topic"
		ofGroup, hintGroup = "using the Kafka consumer group is not authorized", "allow this client to read with the group"
	)
	for name, tt := range map[string]struct {
		key           kmsg.Key
		partitions    []int32
		err           *kerr.Error
		message, hint string
	}{
		"to read":                {kmsg.Fetch, nil, kerr.TopicAuthorizationFailed, ofTopic, hintTopic},
		"to describe it":         {kmsg.ListOffsets, nil, kerr.TopicAuthorizationFailed, ofTopic, hintTopic},
		"to read its commits":    {kmsg.OffsetFetch, nil, kerr.TopicAuthorizationFailed, ofTopic, hintTopic},
		"to read a commit of it": {kmsg.OffsetFetch, []int32{1}, kerr.TopicAuthorizationFailed, ofTopic, hintTopic},
		"to find the group":      {kmsg.FindCoordinator, nil, kerr.GroupAuthorizationFailed, ofGroup, hintGroup},
		"to join the group":      {kmsg.JoinGroup, nil, kerr.GroupAuthorizationFailed, ofGroup, hintGroup},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, b := fake(t, 2)
			want := b.produce(t, 2, "a", "b")
			o, h := b.observed(), &handler{}
			r := start(t, o.Config, h)
			eventually(t, "the first messages", func() bool { return h.holds(want) })
			o.awaitUp(t, r)
			withdrawn := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{tt.key}, Partitions: tt.partitions, Err: tt.err, Count: -1})
			if slices.Contains([]kmsg.Key{kmsg.OffsetFetch, kmsg.FindCoordinator, kmsg.JoinGroup}, tt.key) {
				stop(t, r)
				o = b.observed()
				r = start(t, o.Config, h)
			}
			want = b.produce(t, 2, "c", "d")
			o.awaitDown(t, r, tt.message, tt.hint)
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
	t.Parallel()
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
	o.awaitDown(t, r, "Kafka rejects the commits of offsets",
		"messages are read, and are read again after a restart; check the brokers and the rights of this client")
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
	t.Parallel()
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

// plainListener closes connections that begin with a record of TLS, as a broker does whose listener does not speak it.
type plainListener struct{ net.Listener }

type plainConn struct {
	net.Conn
	begun bool
}

func (l plainListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return &plainConn{Conn: conn}, err
}

func (c *plainConn) Read(b []byte) (int, error) {
	const handshake = 22 // the first byte of a record; the one of a Kafka request is that of its size
	n, err := c.Conn.Read(b)
	if !c.begun && n > 0 && b[0] == handshake {
		_, err = c.Conn.Read(make([]byte, 1<<16)) // the rest, without which the client would see a reset
		return 0, errors.Join(io.EOF, err)
	}
	c.begun = c.begun || n > 0
	return n, err
}

// TestConnectionRefused: each setting by which the brokers cannot be used is named, and with the other value that the hint names the topic
// is read.
func TestConnectionRefused(t *testing.T) {
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		fmt.Fprintf(w, `{"access_token":"of%s-for-%s"}`, req.URL.Path, req.FormValue("scope"))
	}))
	t.Cleanup(tokens.Close)
	bearer := func(c *connection.Config, issuer, scope string) {
		c.SASL = connection.SASL{Mechanism: connection.OAuthBearer, OAuth: connection.OAuth{
			TokenURL: tokens.URL + issuer, ClientID: "c", ClientSecret: func() (string, error) { return "s", nil }, Scope: scope,
			TLS: tlsconfig.Files{Key: c.Key + ".sasl.oauth"},
		}}
	}
	trusted := func(c *connection.Config) { bearer(c, "/trusted", "kafka") }
	const refused, hintToken = "the Kafka brokers refuse the token", "check that k.sasl.oauth.tokenUrl is the issuer that the brokers trust, " +
		"that k.sasl.oauth.scope has the audience that they expect, and the clocks"
	for name, tt := range map[string]struct {
		wrong, right  func(*connection.Config)
		message, hint string
	}{
		"TLS": {
			func(c *connection.Config) { c.TLS = &tlsconfig.Files{Key: c.Key} }, func(*connection.Config) {},
			"the Kafka brokers' port does not speak TLS", "set k.tls: false, or k.brokers to the port of a TLS listener",
		},
		"issuer":   {func(c *connection.Config) { bearer(c, "/other", "kafka") }, trusted, refused, hintToken},
		"audience": {func(c *connection.Config) { bearer(c, "/trusted", "other") }, trusted, refused, hintToken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, b := fake(t, 1, kfake.ListenFn(func(network, address string) (net.Listener, error) {
				l, err := net.Listen(network, address) //nolint:noctx // the test closes it
				return plainListener{l}, err
			}))
			cluster.ControlKey(kmsg.SASLHandshake.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
				cluster.KeepControl()
				return req.ResponseKind(), nil, true
			})
			cluster.ControlKey(kmsg.SASLAuthenticate.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
				cluster.KeepControl()
				answer := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
				if !bytes.Contains(req.(*kmsg.SASLAuthenticateRequest).SASLAuthBytes, []byte("of/trusted-for-kafka")) {
					answer.SASLAuthBytes = []byte(`{"status":"invalid_token"}`)
				}
				return answer, nil, true
			})
			want := b.produce(t, 1, "a")
			o, h := b.observed(), &handler{}
			o.Connection.Key = "k"
			tt.wrong(&o.Connection)
			r := start(t, o.Config, h)
			o.awaitDown(t, r, tt.message, tt.hint)
			stop(t, r)
			o = b.observed()
			o.Connection.Key = "k"
			tt.right(&o.Connection)
			r = start(t, o.Config, h)
			eventually(t, "the message", func() bool { return h.holds(want) })
			o.awaitUp(t, r)
		})
	}
}
