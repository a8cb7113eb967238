package natsconn

import (
	"fmt"

	"github.com/nats-io/nats.go"

	"tutti/internal/core"
)

// lowestMajor and lowestMinor are the lowest version of an external server. Of 2.11.17 a request of a stream with a limit of
// one message for each subject, which the server brings back after a kill, is not always delivered; before 2.11 servers ignore the lifetime of
// a message (Nats-TTL), so that notes of deliveries would never expire.
const (
	lowestMajor = 2
	lowestMinor = 12
)

// tooOld returns CodeUnsupported for a server below the lowest version, nil for others and for one whose version cannot be read. Its message
// follows the server's name.
func tooOld(version string) error {
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n < 2 || major > lowestMajor || major == lowestMajor && minor >= lowestMinor {
		return nil
	}
	lowest := fmt.Sprintf("%d.%d", lowestMajor, lowestMinor)
	return &core.Error{
		Code: core.CodeUnsupported, Message: "is too old: tutti needs nats-server " + lowest + " or later",
		Hint: "upgrade nats-server to " + lowest + " or later",
	}
}

// connectedTooOld is tooOld for the server to which nc is connected, with its version and address.
func connectedTooOld(nc *nats.Conn) *core.Error {
	version := nc.ConnectedServerVersion()
	err := tooOld(version)
	if err == nil {
		return nil
	}
	return &core.Error{
		Code: core.CodeOf(err), Hint: core.HintOf(err),
		Message: "nats-server " + version + " at " + nc.ConnectedAddr() + " " + core.MessageOf(err),
	}
}

// checkServer checks the server to which the connection has moved: the start has checked another one, or the same before it was replaced. The
// connection stays, because the server may be the only one that is left.
func (c *Conn) checkServer(nc *nats.Conn) {
	unfit := connectedTooOld(nc)
	if unfit == nil && nc.ConnectedClusterName() == "" {
		for _, s := range c.cfg.Streams {
			if s.Replicas > 1 {
				unfit = &core.Error{
					Code: core.CodeUnsupported, Message: fmt.Sprintf("the server at %s is not in a cluster, but queue.replicas is %d", nc.ConnectedAddr(), s.Replicas),
					Hint: "set queue.url to servers of one cluster",
				}
				break
			}
		}
	}
	if c.unfit.Store(unfit); unfit != nil {
		c.Log.Warn("queue connected to a server that should not be used", "err", core.DisplayOf(unfit))
	}
}

// Unfit returns why the server to which the connection has moved should not be used. It is a *core.Error, nil if it may.
func (c *Conn) Unfit() error {
	if unfit := c.unfit.Load(); unfit != nil {
		return unfit
	}
	return nil
}
