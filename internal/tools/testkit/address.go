package testkit

import (
	"errors"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
)

// The ports of FreeAddress lie below those from which systems choose by themselves for listeners and connections (from 32768 on Linux, from
// 49152 elsewhere). Processes that run beside each other begin at different ones.
const (
	firstPort, endPort = 20000, 32768
	portsOfProcess     = 64
)

var nextPort = struct {
	sync.Mutex
	port int
}{port: firstPort + os.Getpid()*portsOfProcess%(endPort-firstPort)}

// FreeAddress returns an address of 127.0.0.1, such as 127.0.0.1:20000, that nothing listens on and that the process has not returned before. A server
// that is started there later, or again, finds it free, and until then connections are refused: no listener at port 0, of whichever
// test, gets it in between.
func FreeAddress() (string, error) {
	nextPort.Lock()
	defer nextPort.Unlock()
	var last error
	for range endPort - firstPort {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(nextPort.port))
		if nextPort.port++; nextPort.port == endPort {
			nextPort.port = firstPort
		}
		l, err := net.Listen("tcp", address) //nolint:noctx // closed at once
		if err == nil {
			return address, l.Close()
		}
		last = err
	}
	return "", errors.Join(errors.New("no port is free"), last)
}

// NewAddress is FreeAddress for a test.
func NewAddress(tb testing.TB) string {
	tb.Helper()
	address, err := FreeAddress()
	if err != nil {
		tb.Fatal(err)
	}
	return address
}
