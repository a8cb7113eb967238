package server_test

import (
	"testing"

	"tutti/http/server"
)

func TestConnectionLimits(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg                        server.Config
		files                      int
		total, perAddress, reserve int
	}{
		"few files":           {server.Config{}, 256, 128, 64, 8},
		"usual":               {server.Config{}, 1024, 512, 256, 32},
		"many files":          {server.Config{}, 1 << 20, 8192, 4096, 64},
		"not known":           {server.Config{}, 1<<31 - 1, 8192, 4096, 64},
		"next to none":        {server.Config{}, 2, 1, 1, 2},
		"configured":          {server.Config{MaxConnections: 100, MaxConnectionsPerAddress: 7}, 1024, 100, 7, 6},
		"more than there are": {server.Config{MaxConnections: 5000}, 1024, 704, 352, 64},
	} {
		t.Run(name, func(t *testing.T) {
			if total, perAddress, reserve := server.ConnectionLimits(tt.cfg, tt.files); total != tt.total || perAddress != tt.perAddress || reserve != tt.reserve {
				t.Errorf("got %d, %d, %d, want %d, %d, %d", total, perAddress, reserve, tt.total, tt.perAddress, tt.reserve)
			}
		})
	}
}
