package federation

import (
	"context"
	"sync"

	"tutti/internal/catalogue/definition"
)

// ProbeResult is how a remote node answers now.
type ProbeResult struct {
	// Node is the name of the node, as the configuration has it.
	Node string
	// Fields is how many fields it can aggregate.
	Fields int
	// Err says why it cannot be a part of the federation, nil when it can: a *core.Error with a hint, of CodeInvalid for a fault of
	// the configuration, CodeUnsupported where it allows no introspection, CodeUnavailable where it does not answer. Its cause may
	// tell where the node is.
	Err error
}

// Probe asks the remote nodes of a catalogue side by side what a Federation would ask them at start, once, and returns how each
// answers, by name; none for a catalogue without.
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
