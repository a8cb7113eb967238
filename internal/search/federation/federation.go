package federation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
	"tutti/internal/search/graphql"
	"tutti/internal/search/graphql/schema"
)

var _ graphql.Network = (*Federation)(nil)

// Federation holds the federations of a process' catalogues. It is safe for concurrent use.
type Federation struct {
	cfg Config

	mu sync.Mutex
	// networks are by catalogue ID.
	networks map[string]*network
	// watch starts the background work on a network, stop ends all of it; nil before Start. watches counts the remotes in the
	// background.
	watch   func(n *network)
	stop    context.CancelFunc
	watches sync.WaitGroup
}

// New returns the Federation of catalogues. Catalogues without remote nodes in their network have no federation. No fields are
// known before Start.
func New(defs []definition.Definition, cfg Config) *Federation {
	cfg = cfg.withDefaults()
	f := &Federation{cfg: cfg, networks: map[string]*network{}}
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
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stop != nil {
		return core.NewError(core.CodeConflict, "the federation has been started before")
	}
	ctx, f.stop = context.WithCancel(context.WithoutCancel(ctx))
	f.watch = func(n *network) {
		of, end := context.WithCancel(ctx)
		n.end = end
		for _, r := range n.remotes {
			if r.configErr != nil {
				f.report(r, 0, false, r.configErr)
				continue
			}
			f.watches.Go(func() { f.discoverFields(of, r) })
		}
	}
	for _, n := range f.networks {
		f.watch(n)
	}
	return nil
}

// Stop stops the background work and waits for its end or for that of ctx. It may be called again; on a Federation that was not
// started it returns immediately. It does not end running calls of Query.
func (f *Federation) Stop(ctx context.Context) error {
	defer f.closeConnections()
	f.mu.Lock()
	stop := f.stop
	f.watch = nil
	f.mu.Unlock()
	if stop == nil {
		return nil
	}
	stop()
	stopped := make(chan struct{})
	go func() {
		f.watches.Wait()
		close(stopped)
	}()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		return core.WrapError(core.CodeUnavailable, "stopping the federation", ctx.Err())
	}
}

// closeConnections closes the idle connections of all remotes.
func (f *Federation) closeConnections() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.networks {
		n.closeConnections()
	}
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
			r.files.Forget()
		}
		old.closeConnections()
	}
	if n == nil {
		delete(f.networks, d.ID)
		return nil
	}
	f.networks[d.ID] = n
	if f.watch != nil {
		f.watch(n)
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

// Defaults of Config.
const (
	DefaultTimeout      = 10 * time.Second
	DefaultFirstRetry   = time.Second
	DefaultLastRetry    = 60 * time.Second
	DefaultRefreshEvery = 5 * time.Minute
	DefaultMaxInFlight  = 16
	DefaultMaxBytes     = 32 << 20
)

// Config is the configuration of queries to remote nodes. The zero value is the default.
type Config struct {
	// Timeout limits one call of a remote node, including the wait for a free slot. Default 10 s.
	Timeout time.Duration
	// FirstRetry is the pause before the discovery of an unavailable remote node is retried. It doubles up to LastRetry. Defaults
	// 1 s and 60 s.
	FirstRetry, LastRetry time.Duration
	// RefreshEvery is the interval of the discovery of a remote node that responds. Default 5 min.
	RefreshEvery time.Duration
	// MaxInFlight limits the concurrent calls of one remote node; others wait. Default 16.
	MaxInFlight int
	// MaxBytes limits the response of a remote node, uncompressed. Default 32 MiB.
	MaxBytes int64
	// Changed is called with the ID of a catalogue whose federation has other fields than before, once Federation.Membership
	// returns them; it may be called concurrently. Nil means no calls.
	Changed func(catalogue string)
	// Failures records nodes that cannot be reached or reject queries; nil records nothing.
	Failures *tlsconfig.Failures
	// Transport makes the calls. Nil means the Federation's own connections.
	Transport http.RoundTripper
	// Random returns the jitter of the pauses, in [0, 1). Nil means rand.Float64.
	Random func() float64
	// Logger logs state changes of remote nodes. Nil disables logging.
	Logger *slog.Logger
	// Metrics may be nil.
	Metrics *Metrics
}

func (c Config) withDefaults() Config {
	c.Timeout = cmp.Or(max(c.Timeout, 0), DefaultTimeout)
	c.FirstRetry = cmp.Or(max(c.FirstRetry, 0), DefaultFirstRetry)
	c.LastRetry = cmp.Or(max(c.LastRetry, 0), DefaultLastRetry)
	c.RefreshEvery = cmp.Or(max(c.RefreshEvery, 0), DefaultRefreshEvery)
	c.MaxInFlight = cmp.Or(max(c.MaxInFlight, 0), DefaultMaxInFlight)
	c.MaxBytes = cmp.Or(max(c.MaxBytes, 0), DefaultMaxBytes)
	if c.Changed == nil {
		c.Changed = func(string) {}
	}
	if c.Random == nil {
		c.Random = rand.Float64
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Types of the fields that can be aggregated.
const (
	termsType   = "Aggregations"
	numericType = "NumericAggregations"
)

// jitter is the maximum part of a pause that is randomly subtracted, so that simultaneous failures are not retried
// simultaneously.
const jitter = 0.2

// typeQuery requests the fields of a type.
const typeQuery = `query fields($name: String!) { __type(name: $name) { name fields { name type { name } } } }`

// discover queries the fields that a remote can aggregate. CodeUnsupported if it does not allow introspection; otherwise errors
// are those of call.
func (c Config) discover(ctx context.Context, r *remote) (map[string]string, error) {
	name, err := json.Marshal(r.documentType + "Aggregations")
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "the query could not be encoded", err)
	}
	answer, err := c.call(ctx, r, http.Header{}, nodeQuery{Query: typeQuery, Variables: map[string]json.RawMessage{"name": name}})
	if core.CodeOf(err) == core.CodeUnauthenticated {
		return nil, &core.Error{
			Code: core.CodeUnauthenticated, Message: core.MessageOf(err), Err: err,
			Hint: "the fields of a node are requested without a token: add an access.json to the node's catalogue, or set auth.defaultAccess: public there",
		}
	}
	if err != nil {
		return nil, err
	}
	var found *struct {
		Fields []struct {
			Name string `json:"name"`
			Type struct {
				Name string `json:"name"`
			} `json:"type"`
		} `json:"fields"`
	}
	raw, asked := answer.Data["__type"]
	if asked && json.Unmarshal(raw, &found) != nil {
		return nil, core.NewError(core.CodeUpstream, "responded with something other than the fields of a type")
	}
	switch {
	case found != nil:
	case answer.introspectionOff():
		return nil, &core.Error{
			Code: core.CodeUnsupported, Message: "does not allow GraphQL introspection, by which its fields are discovered; the next discovery is when this server restarts",
			Hint: `set "disableGraphQLIntrospection": false in the base.json of the node's catalogue and restart it, then restart this server`,
		}
	case len(answer.Errors) > 0 || !asked:
		return nil, answer.errorOf(r.secrets(nil))
	default:
		return nil, &core.Error{
			Code: core.CodeUpstream, Message: "has no type " + r.documentType + "Aggregations",
			Hint: "set documentType to the name of the node's root field, and check that the node allows GraphQL introspection",
		}
	}
	fields := map[string]string{}
	for _, f := range found.Fields {
		if of := f.Type.Name; schema.IsName(f.Name) && (of == termsType || of == numericType) {
			fields[f.Name] = of
		}
	}
	return fields, nil
}

// discoverFields updates the fields of a remote until ctx ends, or until it reports that it does not allow introspection.
func (f *Federation) discoverFields(ctx context.Context, r *remote) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for tries := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		fields, err := f.cfg.discover(ctx, r)
		if ctx.Err() != nil {
			return
		}
		changed := r.update(fields, err)
		f.report(r, len(fields), changed, r.explained(err))
		if changed {
			f.cfg.Changed(r.catalogue)
		}
		pause := f.cfg.RefreshEvery
		switch core.CodeOf(err) {
		case core.CodeUnsupported:
			if _, why := r.availableFields(); why != nil {
				return
			}
			tries = 0
		case core.CodeUnavailable, core.CodeOverloaded, core.CodeUnauthenticated, core.CodeForbidden:
			pause = min(f.cfg.FirstRetry<<min(tries, 16), f.cfg.LastRetry)
			tries++
		default:
			tries = 0
		}
		timer.Reset(pause - time.Duration(f.cfg.Random()*jitter*float64(pause)))
	}
}

// report logs the result of a discovery if it is new, and updates the metrics.
func (f *Federation) report(r *remote, fields int, changed bool, err error) {
	f.cfg.Metrics.show(r, err == nil)
	r.record(err)
	switch news := r.shouldReport(err) || changed; {
	case !news:
	case err == nil:
		f.cfg.Logger.Info("remote node discovered", "catalogue", r.catalogue, "node", r.label, "fields", fields)
	default:
		f.cfg.Logger.Warn("discovery of a remote node failed", "catalogue", r.catalogue, "node", r.label, "err", core.DisplayOf(err))
	}
}

// ProbeResult is the current state of a remote node.
type ProbeResult struct {
	// Node is the configured name of the node.
	Node string
	// Fields is the number of fields that it can aggregate.
	Fields int
	// Err is why it cannot be part of the federation, nil if it can: a *core.Error with a hint, of CodeInvalid for a
	// configuration error, CodeUnsupported if it does not allow introspection, CodeUnavailable if it does not respond. It says why a
	// node cannot be reached, and may contain its address.
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
	defer n.closeConnections()
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
			fields, err := cfg.discover(ctx, r)
			out[i].Fields, out[i].Err = len(fields), r.explained(err)
		})
	}
	asked.Wait()
	return out
}

// Metrics records the state of remote nodes; nil disables it. The label catalogue is a configured ID, node the configured name of
// a node of it.
type Metrics struct {
	up       *prometheus.GaugeVec
	duration *prometheus.HistogramVec
}

// NewMetrics registers the metrics of this package with reg, once per reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	with, labels := promauto.With(reg), []string{"catalogue", "node"}
	return &Metrics{
		up: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tutti_federation_node_up", Help: "Whether the last request to a remote node of a federation succeeded: 1 if it did.",
		}, labels),
		duration: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tutti_federation_request_duration_seconds", Help: "Duration of a search request to a remote node of a federation, failed ones included.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2, 13),
		}, labels),
	}
}

func (m *Metrics) show(r *remote, up bool) {
	if m == nil {
		return
	}
	value := 0.0
	if up {
		value = 1
	}
	m.up.WithLabelValues(r.catalogue, r.label).Set(value)
}

func (m *Metrics) observe(r *remote, took time.Duration) {
	if m != nil {
		m.duration.WithLabelValues(r.catalogue, r.label).Observe(took.Seconds())
	}
}

// forget deletes the series of a node that is no longer configured.
func (m *Metrics) forget(r *remote) {
	if m != nil {
		m.up.DeleteLabelValues(r.catalogue, r.label)
		m.duration.DeleteLabelValues(r.catalogue, r.label)
	}
}
