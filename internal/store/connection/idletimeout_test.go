package connection_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"tutti/internal/store/connection"
)

// TestIdleTimeout: reads of an idle connection time out, those of a connection with occasional bytes do not; a deadline set before a
// read counts.
func TestIdleTimeout(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	peers := make(chan net.Conn, 2)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				close(peers)
				return
			}
			peers <- conn
		}
	}()
	dial := func(silence time.Duration) (mine, peer net.Conn) {
		d := &connection.Dialer{IdleTimeout: silence}
		mine, err := d.DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = mine.Close() })
		peer = <-peers
		t.Cleanup(func() { _ = peer.Close() })
		return mine, peer
	}
	one := make([]byte, 1)
	t.Run("nothing comes", func(t *testing.T) {
		mine, _ := dial(20 * time.Millisecond)
		if _, err := mine.Read(one); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("reading returned %v", err)
		}
	})
	t.Run("bytes come", func(t *testing.T) {
		mine, peer := dial(time.Minute)
		if err := mine.SetDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		if _, err := peer.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(mine, one); err != nil || one[0] != 'x' {
			t.Errorf("reading returned %q, %v", one, err)
		}
	})
	t.Run("deadline before the read", func(t *testing.T) {
		mine, _ := dial(time.Minute)
		if err := mine.SetDeadline(time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		if _, err := mine.Read(one); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("reading returned %v", err)
		}
		if _, err := mine.Write(one); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("writing returned %v", err)
		}
	})
	t.Run("nothing is taken", func(t *testing.T) {
		mine, _ := dial(20 * time.Millisecond)
		large := make([]byte, 64<<20) // more than the socket buffers hold
		if _, err := mine.Write(large); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("writing returned %v", err)
		}
	})
}
