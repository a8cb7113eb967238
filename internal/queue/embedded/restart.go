package embedded

import (
	"context"
	"errors"

	"github.com/nats-io/nats-server/v2/server"

	"tutti/internal/core"
	"tutti/internal/disk"
)

// minFreeBytes is what the folder must have room for before a restart: the largest message.
const minFreeBytes = maxPayload

func errNotRunning() error {
	return core.NewError(core.CodeUnavailable, "the embedded queue does not run")
}

// StorageError returns why the server cannot store although it may take connections, nil when it knows of nothing. nats-server
// keeps the first write error of a stream and refuses every later write to it, so only Restart removes such a fault.
func (s *Server) StorageError() error {
	i := s.current.Load()
	if i == nil {
		return errNotRunning()
	}
	for _, e := range i.nats.Healthz(&server.HealthzOptions{Details: true}).Errors {
		if e.Type == server.HealthzErrorStream || e.Type == server.HealthzErrorJetStream {
			return core.WrapError(core.CodeUnavailable, "the embedded queue cannot write", errors.New(e.Error))
		}
	}
	return nil
}

// Restart replaces the server by a new one on the same folder, which stays locked. Connections break off, and everything
// that was stored is there afterwards. CodeUnavailable, and the server runs on, while the folder has no room for a write;
// after another error no server runs until a later Restart succeeds.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return errNotRunning()
	}
	if err := disk.ProbeSpace(s.cfg.Dir, minFreeBytes); err != nil {
		return core.WrapError(core.CodeUnavailable, "the folder of the embedded queue takes no writes", err)
	}
	if i := s.current.Swap(nil); i != nil {
		i.stop()
	}
	return s.run(ctx)
}
