package federation

import (
	"bytes"
	"context"
	"sync"

	"tutti/internal/core"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
	"tutti/internal/search/graphql"
)

var _ graphql.Network = (*Federation)(nil)

// Federation holds the federations of a process' catalogues. It is safe for concurrent use.
type Federation struct {
	cfg    Config
	client *client
	// wake signals networks that are not watched yet, stopped is closed when the background work has ended.
	wake, stopped chan struct{}

	mu sync.Mutex
	// networks are by catalogue ID.
	networks map[string]*network
	cancel   context.CancelFunc // nil before Start
}

// New returns the Federation of catalogues. Catalogues without remote nodes in their network have no federation. No fields are
// known before Start.
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

// Start starts the discovery of all remote nodes in the background. CodeConflict if it was called before. The background work
// continues until Stop, also after ctx ends.
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

// Stop stops the background work and waits for its end or for that of ctx. It may be called again; on a Federation that was not
// started it returns immediately. Calls of Query end with their own context.
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

// run starts the work on new networks, and waits for its end.
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

// unwatched returns the networks whose work has not been started.
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

// started stores the cancel function of a network's work; false if another network replaced it.
func (f *Federation) started(n *network, end func()) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.networks[n.catalogue] != n {
		return false
	}
	n.end = end
	return true
}

// networkFor returns the network of a catalogue, nil for none. It adds a new network, for example of a catalogue whose
// configuration was fixed.
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

// Membership reports whether a catalogue is part of a federation, and returns the fields that its remote nodes can aggregate,
// with their type names; if several nodes have a field, the type of the node configured first.
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
