package federation

import (
	"context"
	"sync"

	"tutti/internal/search/catalogue/definition"
)

// ProbeResult is the current state of a remote node.
type ProbeResult struct {
	// Node is the configured name of the node.
	Node string
	// Fields is the number of fields that it can aggregate.
	Fields int
	// Err is why it cannot be part of the federation, nil if it can: a *core.Error with a hint, of CodeInvalid for a
	// configuration error, CodeUnsupported if it does not allow introspection, CodeUnavailable if it does not respond. Its cause
	// may contain the address of the node.
	Err error
}

// Probe sends the remote nodes of a catalogue, concurrently and once, the queries of a Federation at start, and returns the
// results by name; none for a catalogue without remote nodes.
func Probe(ctx context.Context, d definition.Definition, cfg Config) []ProbeResult {
	cfg = cfg.withDefaults()
	n := networkOf(d, cfg)
	if n == nil {
		return nil
	}
	c := newClient(cfg)
	defer c.close()
	var out []ProbeResult
	var remotes []*remote
	for _, one := range n.nodes {
		if one.remote != nil {
			out, remotes = append(out, ProbeResult{Node: one.name, Err: one.remote.configErr}), append(remotes, one.remote)
		}
	}
	var asked sync.WaitGroup
	for i, r := range remotes {
		if r.configErr != nil {
			continue
		}
		asked.Go(func() {
			fields, err := c.discover(ctx, r)
			out[i].Fields, out[i].Err = len(fields), err
		})
	}
	asked.Wait()
	return out
}
