package hostname_test

import (
	"testing"

	"tutti/internal/base/hostname"
)

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.8.9.1": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "localhost.example": false, "0.0.0.0": false, "10.0.0.1": false, "::": false, "127.0.0.1:80": false, "[::1]": false,
	} {
		if got := hostname.Loopback(host); got != want {
			t.Errorf("%q: got %t", host, got)
		}
	}
}
