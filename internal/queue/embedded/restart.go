package embedded

import (
	"context"
	"errors"

	"github.com/nats-io/nats-server/v2/server"

	"tutti/internal/base/disk"
	"tutti/internal/core"
)

// minFreeBytes is the free space that a restart needs: the largest message.
const minFreeBytes = maxPayload

func errNotRunning() error {
	return core.NewError(core.CodeUnavailable, "the embedded queue is not running")
}

// StorageError returns why the server cannot store although it may accept connections, nil if it can as far as it
// knows. nats-server keeps the first write error of a stream and rejects every later write to it, so only Restart
// clears it.
func (s *Server) StorageError() error {
	i := s.current.Load()
	if i == nil {
		return errNotRunning()
	}
	for _, e := range i.nats.Healthz(&server.HealthzOptions{Details: true}).Errors {
		switch e.Type {
		case server.HealthzErrorStream:
			return core.WrapError(core.CodeUnavailable, "the embedded queue cannot write to the stream "+e.Stream, errors.New(e.Error))
		case server.HealthzErrorJetStream:
			return core.WrapError(core.CodeUnavailable, "the embedded queue cannot write", errors.New(e.Error))
		default: // nothing about storing
		}
	}
	return nil
}

// Restart replaces the server by a new one on the same folder, which stays locked. Connections are closed; everything
// stored is kept. CodeUnavailable, and the server keeps running, while the folder has no space for a write; after
// another error no server runs until a later Restart succeeds.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return errNotRunning()
	}
	if err := disk.ProbeSpace(s.cfg.Dir, minFreeBytes); err != nil {
		return core.WrapError(core.CodeUnavailable, "the folder of the embedded queue cannot be written", err)
	}
	if i := s.current.Swap(nil); i != nil {
		i.stop()
	}
	return s.run(ctx)
}
