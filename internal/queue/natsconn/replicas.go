package natsconn

import (
	"context"
	"time"
)

// firstRaise and lastRaise are the shortest and the longest pause between two attempts to give streams their replicas.
const (
	firstRaise = time.Second
	lastRaise  = time.Minute
)

// keepReplicas gives streams their default number of replicas, until the connection is closed: after each move of the connection, because its server
// may have become one of a cluster, and again while a cluster has too few servers.
func (c *Conn) keepReplicas(ctx context.Context) {
	for pause := firstRaise; ; pause = min(2*pause, lastRaise) {
		var again <-chan time.Time
		if !c.raiseReplicas(ctx) {
			again = time.After(pause)
		}
		select {
		case <-c.closed:
			return
		case <-c.moved:
			pause = firstRaise
		case <-again:
		}
	}
}

// raiseReplicas gives streams with fewer replicas than defaultReplicas this number, unless their number is configured. It reports whether all have it.
func (c *Conn) raiseReplicas(ctx context.Context) bool {
	want, all := c.defaultReplicas(), true
	for _, cfg := range c.cfg.Streams {
		if cfg.Replicas > 0 || want == 1 {
			continue
		}
		if err := c.raise(ctx, cfg.Name, want); err != nil {
			all = false
			c.Log.Debug("the replicas of a stream could not be increased", "stream", cfg.Name, "replicas", want, "err", err)
		}
	}
	return all
}

func (c *Conn) raise(ctx context.Context, name string, want int) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	stream, err := c.JS.Stream(ctx, name)
	if err != nil {
		return err
	}
	cfg := stream.CachedInfo().Config
	before := cfg.Replicas
	if before >= want {
		return nil
	}
	cfg.Replicas = want
	if _, err = c.JS.UpdateStream(ctx, cfg); err == nil {
		c.Log.Info("the replicas of a stream were increased", "stream", name, "replicas", want, "before", before)
	}
	return err
}
