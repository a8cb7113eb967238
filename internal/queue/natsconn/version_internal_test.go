package natsconn

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/core"
)

// TestTooOld: only versions that are known to be lower than the lowest are refused.
func TestTooOld(t *testing.T) {
	for version, want := range map[string]bool{
		"1.4.1": true, "2.9.25": true, "2.10.27": true, "2.11.17": true, "2.12.0-RC.1": false,
		"2.12.0": false, "2.14.10": false, "2.15.3": false, "3.0.0": false, "": false, "x": false,
	} {
		if got := tooOld(version) != nil; got != want {
			t.Errorf("tooOld(%q) is %v", version, got)
		}
	}
}

// reconnections has an element for each line of the log that says that the connection is restored.
type reconnections chan struct{}

func (r reconnections) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("queue reconnected")) {
		r <- struct{}{}
	}
	return len(line), nil
}

// TestServerIsCheckedAgain: a connection that moves to a server that is too old, or not in the cluster that the replicas need, says so with the
// server until it moves to one that may be used.
func TestServerIsCheckedAgain(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	next := make(chan struct{})
	var serving sync.WaitGroup
	defer serving.Wait()
	defer listener.Close()
	serving.Go(func() {
		for _, info := range []string{`"version":"2.15.0","cluster":"c"`, `"version":"2.10.27","cluster":"c"`, `"version":"2.15.0"`, `"version":"2.15.0","cluster":"c"`} {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			fmt.Fprintf(conn, "INFO {%s,\"jetstream\":true,\"headers\":true,\"max_payload\":1048576}\r\n", info)
			lines := bufio.NewScanner(conn)
			for lines.Scan() && lines.Text() != "PING" {
			}
			fmt.Fprint(conn, "PONG\r\n")
			<-next
			conn.Close()
		}
	})
	connected := make(reconnections)
	c, err := Dial(t.Context(), ConnConfig{
		URL: "nats://" + address, Logger: slog.New(slog.NewTextHandler(connected, nil)), Streams: []jetstream.StreamConfig{{Replicas: 3}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.Unfit() != nil {
		t.Errorf("the first server: %v", c.Unfit())
	}
	for _, want := range []string{
		"nats-server 2.10.27 at " + address + " is too old: tutti needs nats-server 2.12 or later; upgrade nats-server to 2.12 or later",
		"the server at " + address + " is not in a cluster, but queue.replicas is 3; set queue.url to servers of one cluster", "",
	} {
		next <- struct{}{}
		<-connected
		got := ""
		if err := c.Unfit(); err != nil {
			got = core.DisplayOf(err)
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	close(next)
	if err := c.Disconnect(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestDialTooOld: a server that is too old ends the start at once, with its version and address.
func TestDialTooOld(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "INFO {\"version\":\"2.10.27\",\"jetstream\":true,\"headers\":true}\r\n")
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			if lines.Text() == "PING" {
				fmt.Fprint(conn, "PONG\r\n")
			}
		}
	}()
	address := listener.Addr().String()
	_, err = Dial(t.Context(), ConnConfig{URL: "nats://" + address, Logger: slog.New(slog.DiscardHandler)})
	const message = "connecting to the queue: nats-server 2.10.27 at %s is too old: tutti needs nats-server 2.12 or later"
	if core.CodeOf(err) != core.CodeUnsupported || core.MessageOf(err) != fmt.Sprintf(message, address) {
		t.Errorf("got %v", err)
	}
}
