package federation

import (
	"bytes"
	"context"
	"sync"

	"tutti/internal/catalogue"
	"tutti/internal/catalogue/definition"
	"tutti/internal/core"
	"tutti/internal/graph"
)

var _ graph.Network = (*Federation)(nil)

// Federation holds the federations of a process' catalogues. All methods may be called concurrently.
type Federation struct {
	cfg    Config
	client *client
	// wake is told of networks that are not watched yet, stopped is closed when the background work has ended.
	wake, stopped chan struct{}

	mu sync.Mutex
	// networks are by the ids of their catalogues.
	networks map[string]*network
	cancel   context.CancelFunc // nil before Start
}

// New makes the Federation of catalogues. Those without remote nodes in their network are part of none. No node is known before
// Start.
func New(defs []definition.Definition, cfg Config) *Federation {
	cfg = cfg.withDefaults()
	f := &Federation{
		cfg: cfg, client: newClient(cfg), networks: map[string]*network{},
		wake: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	for _, d := range defs {
		if d.Err == nil {
			f.networkFor(d)
		}
	}
	return f
}

// Start begins to find out about all remote nodes, and waits for none. CodeConflict when it was called before. The background
// work goes on until Stop, whatever becomes of ctx.
func (f *Federation) Start(ctx context.Context) error {
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cancel != nil {
		cancel()
		return core.NewError(core.CodeConflict, "the federation has been started before")
	}
	f.cancel = cancel
	go f.run(background)
	return nil
}

// Stop ends the background work and waits for its end, not beyond that of ctx. It may be called again; a Federation that was not
// started is stopped already. Calls of Ask end with their own context.
func (f *Federation) Stop(ctx context.Context) error {
	defer f.client.close()
	f.mu.Lock()
	cancel := f.cancel
	f.mu.Unlock()
	if cancel == nil {
		return nil
	}
	cancel()
	select {
	case <-f.stopped:
		return nil
	case <-ctx.Done():
		return core.WrapError(core.CodeUnavailable, "stopping the federation", ctx.Err())
	}
}

// run begins the work on networks as they come, and waits for its end.
func (f *Federation) run(ctx context.Context) {
	defer close(f.stopped)
	var watches sync.WaitGroup
	defer watches.Wait()
	for {
		for _, n := range f.unwatched() {
			of, end := context.WithCancel(ctx)
			if !f.started(n, end) {
				end()
				continue
			}
			for _, r := range n.remotes {
				if r.configErr != nil {
					f.report(r, 0, false, r.configErr)
					continue
				}
				watches.Go(func() { f.watch(of, r) })
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		}
	}
}

// unwatched returns the networks that no work has begun on.
func (f *Federation) unwatched() []*network {
	f.mu.Lock()
	defer f.mu.Unlock()
	var waiting []*network
	for _, n := range f.networks {
		if n != nil && n.end == nil {
			waiting = append(waiting, n)
		}
	}
	return waiting
}

// started notes how the work on a network ends; false when another one took its place.
func (f *Federation) started(n *network, end func()) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.networks[n.catalogue] != n {
		return false
	}
	n.end = end
	return true
}

// networkFor returns the network of a catalogue, nil for none. One that is new, as that of a catalogue whose configuration was mended is, is
// taken up.
func (f *Federation) networkFor(d definition.Definition) *network {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.networks[d.ID]
	if old == nil && len(d.Network) == 0 || old != nil && bytes.Equal(old.raw, d.Network) {
		return old
	}
	n := networkOf(d, f.cfg)
	if old == nil && n == nil {
		return nil
	}
	if old != nil {
		if old.end != nil {
			old.end()
		}
		for _, r := range old.remotes {
			f.cfg.Metrics.forget(r)
		}
	}
	if n == nil {
		delete(f.networks, d.ID)
		return nil
	}
	f.networks[d.ID] = n
	select {
	case f.wake <- struct{}{}:
	default:
	}
	return n
}

// Membership reports whether a catalogue is part of a federation, and returns the fields that its remote nodes can aggregate, with the names of
// their types: of several, that of the node that is configured first.
func (f *Federation) Membership(m *catalogue.Model) (federated bool, remote map[string]string) {
	n := f.networkFor(m.Definition())
	if n == nil {
		return false, nil
	}
	remote = map[string]string{}
	for _, r := range n.remotes {
		fields, _ := r.availableFields()
		for name, of := range fields {
			if _, taken := remote[name]; !taken {
				remote[name] = of
			}
		}
	}
	return true, remote
}
