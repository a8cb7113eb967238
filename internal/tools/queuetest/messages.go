package queuetest

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tidwall/gjson"

	"tutti/internal/tools/testkit"
)

// InProcess is a server in the test's process.
type InProcess interface {
	InProcessConn() (net.Conn, error)
}

// connect connects to the server in this process, or to that of url if it is nil, and returns a function that closes the connection.
func connect(t testing.TB, url string, server InProcess) (jetstream.JetStream, func()) {
	t.Helper()
	var opts []nats.Option
	if server != nil {
		opts = append(opts, nats.InProcessServer(server))
	}
	nc, err := nats.Connect(url, opts...)
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(testkit.HangLimit))
	if err != nil {
		t.Fatal(err)
	}
	return js, nc.Close
}

// Messages returns the messages of streams of a server by subject: headers, without those of NATS, and data. server may be nil for that
// of url. It fails the test if a subject has two messages.
func Messages(t testing.TB, url string, server InProcess, streams ...string) map[string]string {
	t.Helper()
	js, closeConn := connect(t, url, server)
	defer closeConn()
	all := map[string]string{}
	for _, name := range streams {
		s, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		state := s.CachedInfo().State
		for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
			m, err := s.GetMsg(t.Context(), seq)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			for header := range m.Header {
				if strings.HasPrefix(header, "Nats-") {
					m.Header.Del(header)
				}
			}
			if _, twice := all[m.Subject]; twice {
				t.Errorf("%s: two messages of the subject %s", name, m.Subject)
			}
			all[m.Subject] = fmt.Sprintf("%s %q", m.Header, m.Data)
		}
	}
	return all
}

// Counter returns a function that returns the number of messages of a stream of the server at url, 0 for a stream that does not exist.
func Counter(t testing.TB, url string) func(stream string) uint64 {
	t.Helper()
	js, closeConn := connect(t, url, nil)
	t.Cleanup(closeConn)
	return func(stream string) uint64 {
		s, err := js.Stream(t.Context(), stream)
		if err != nil {
			return 0
		}
		return s.CachedInfo().State.Msgs
	}
}

// Calls returns a function that returns how many calls of JetStream's API the server at url has said in its audit since, of those whose
// subject begins with a prefix. The server must not limit the rights of its users.
func Calls(t testing.TB, url string) func(prefix string) int {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	var mu sync.Mutex
	var subjects []string
	_, err = nc.Subscribe("$JS.EVENT.ADVISORY.API", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		subjects = append(subjects, gjson.GetBytes(m.Data, "subject").String())
	})
	flush := func() {
		if err == nil {
			err = nc.Flush()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	flush()
	return func(prefix string) (n int) {
		t.Helper()
		flush()
		mu.Lock()
		defer mu.Unlock()
		for _, subject := range subjects {
			if strings.HasPrefix(subject, prefix) {
				n++
			}
		}
		return n
	}
}
