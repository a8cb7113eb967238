package natsconn

import (
	"context"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// firstRaise and lastRaise are the shortest and the longest pause between two attempts to raise the replicas of streams.
const (
	firstRaise = time.Second
	lastRaise  = time.Minute
)

// replicaKeeper sets the number of replicas of streams for which none is configured to that of the cluster.
type replicaKeeper struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	log     *slog.Logger
	streams []jetstream.StreamConfig
	// moved has an element when the connection has moved since run began its last attempt; closed is closed when it has ended.
	moved, closed <-chan struct{}
}

// run raises the replicas of streams until the connection is closed: after each move of the connection, because its server may have become
// one of a cluster, and again while a cluster has too few servers.
func (k replicaKeeper) run(ctx context.Context) {
	for pause := firstRaise; ; pause = min(2*pause, lastRaise) {
		var again <-chan time.Time
		if !k.raiseAll(ctx) {
			again = time.After(pause)
		}
		select {
		case <-k.closed:
			return
		case <-k.moved:
			pause = firstRaise
		case <-again:
		}
	}
}

// raiseAll raises the replicas of streams for which no number is configured to defaultReplicas, and reports whether all have so many.
func (k replicaKeeper) raiseAll(ctx context.Context) bool {
	want, all := defaultReplicas(k.nc), true
	for _, cfg := range k.streams {
		if cfg.Replicas > 0 || want == 1 {
			continue
		}
		if err := k.raise(ctx, cfg.Name, want); err != nil {
			all = false
			k.log.Debug("the replicas of a stream could not be increased", "stream", cfg.Name, "replicas", want, "err", err)
		}
	}
	return all
}

func (k replicaKeeper) raise(ctx context.Context, name string, want int) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	stream, err := k.js.Stream(ctx, name)
	if err != nil {
		return err
	}
	cfg := stream.CachedInfo().Config
	before := cfg.Replicas
	if before >= want {
		return nil
	}
	cfg.Replicas = want
	if _, err = k.js.UpdateStream(ctx, cfg); err == nil {
		k.log.Info("the replicas of a stream were increased", "stream", name, "replicas", want, "before", before)
	}
	return err
}
