package natsconn

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"tutti/internal/core"
)

// TestReadyWhileAProbeIsSlow holds that a probe which takes longer than Ready waits takes back no success before it, until it
// takes longer than a probe may.
func TestReadyWhileAProbeIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDurability()
		ready := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), readyTimeout)
			defer cancel()
			return d.ready(ctx)
		}
		if err := ready(); core.MessageOf(err) != "did not answer within 2s" {
			t.Errorf("before the first probe: %v", err)
		}
		d.RecordProbe(nil)
		time.Sleep(probeMaxAge)
		for range 2 {
			if err := ready(); err != nil {
				t.Errorf("a slow probe: %v", err)
			}
		}
		if err := ready(); core.MessageOf(err) != "did not answer within 2s" {
			t.Errorf("a probe that hangs: %v", err)
		}
	})
}

// TestSlowWriteRequestsProbe holds that a write which hangs has the streams probed: nats-server does not answer a message that
// it could not write.
func TestSlowWriteRequestsProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Conn{Durability: newDurability()}
		err := c.Write(t.Context(), func(context.Context) error {
			time.Sleep(slowWriteTime)
			synctest.Wait()
			if len(c.Durability.requested) != 1 {
				t.Error("no probe was requested")
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
