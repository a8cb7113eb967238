package queuetest_test

import (
	"net"
	"strings"
	"testing"

	"tutti/internal/tools/queuetest"
)

// TestTakenAddress: a server that cannot listen, of which nats-server says nothing to its caller, is an error at once; the cluster would wait for it
// for good.
func TestTakenAddress(t *testing.T) {
	c, err := queuetest.StartCluster(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	_, address, _ := strings.Cut(strings.Split(c.URLs(0), ",")[1], "@")
	c.Kill("node1")
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := c.Restart(); err == nil || !strings.HasPrefix(err.Error(), "starting node1: Error listening on port: "+address) {
		t.Errorf("got %v", err)
	}
}
