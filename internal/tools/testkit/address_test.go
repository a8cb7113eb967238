package testkit_test

import (
	"net"
	"strconv"
	"testing"

	"tutti/internal/tools/testkit"
)

// TestNewAddress: no address is returned twice or while something listens on it, and a listener at port 0 gets none.
func TestNewAddress(t *testing.T) {
	first := testkit.NewAddress(t)
	_, text, err := net.SplitHostPort(first)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port+1)))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	any0, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer any0.Close()
	if chosen := any0.Addr().(*net.TCPAddr).Port; chosen < 32768 {
		t.Errorf("the system has chosen port %d for a listener", chosen)
	}
	seen := map[string]bool{first: true, taken.Addr().String(): true}
	for range 20 {
		address := testkit.NewAddress(t)
		if seen[address] {
			t.Errorf("%s is returned again, or is taken", address)
		}
		seen[address] = true
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
}
