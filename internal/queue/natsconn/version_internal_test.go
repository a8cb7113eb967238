package natsconn

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"testing"

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
