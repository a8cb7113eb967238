package queuetest

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/tools/testkit"
)

const (
	// Accounts is how many accounts a cluster has: one for each test that uses it at the same time.
	Accounts = 16
	// readyPoll is the pause between two checks of a starting cluster.
	readyPoll = 20 * time.Millisecond
	// removalTime is what the removal of a test's streams may take; other tests use the servers at the same time.
	removalTime = time.Minute
	// formTime bounds the start of a server, and the forming of a cluster.
	formTime = time.Minute
)

// Cluster is three nats-servers with JetStream in this process, which form a cluster. Its accounts have streams of their
// own each, so that tests can share it.
type Cluster struct {
	nodes []*node

	mu   sync.Mutex
	free []int // accounts that no test uses
}

// node is one server; server is nil while it does not run.
type node struct {
	name, config string
	server       *server.Server
}

// StartCluster starts a cluster whose streams are in dir, and returns when it can make streams, or after a minute.
func StartCluster(ctx context.Context, dir string) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, formTime)
	defer cancel()
	const nodes = 3
	var routes, clients [nodes]string
	for i := range nodes {
		var err error
		if routes[i], err = testkit.FreeAddress(); err != nil {
			return nil, err
		}
		if clients[i], err = testkit.FreeAddress(); err != nil {
			return nil, err
		}
	}
	c := &Cluster{}
	for i := range Accounts {
		c.free = append(c.free, i)
	}
	for i := range nodes {
		n := &node{name: fmt.Sprintf("node%d", i)}
		n.config = filepath.Join(dir, n.name+".conf")
		c.nodes = append(c.nodes, n)
		err := os.WriteFile(n.config, []byte(configuration(n.name, dir, clients[i], routes[i], "nats-route://"+strings.Join(routes[:], ", nats-route://"))), 0o600)
		if err == nil {
			err = n.start()
		}
		if err != nil {
			c.Stop()
			return nil, err
		}
	}
	if err := c.Ready(ctx); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// configuration returns the configuration file of a node, which listens at an address for clients and at another for the nodes of routes.
func configuration(name, dir, clients, own, routes string) string {
	var users strings.Builder
	for i := range Accounts {
		fmt.Fprintf(&users, "t%d: {jetstream: enabled, users: [{user: t%d, password: t, %s}, {user: a%d, password: t}]}\n", i, i, Rights, i)
	}
	return fmt.Sprintf(`
server_name: %s
listen: %q
jetstream: {store_dir: %q, max_mem_store: 64MB, max_file_store: 4GB}
cluster: {name: tutti, listen: %q, routes: [%s]}
accounts: {
%s}
`, name, clients, filepath.Join(dir, name), own, routes, users.String())
}

func (n *node) start() error {
	opts, err := server.ProcessConfigFile(n.config)
	if err != nil {
		return fmt.Errorf("reading the configuration of %s: %w", n.name, err)
	}
	opts.NoLog, opts.NoSigs = true, true
	started, err := server.NewServer(opts)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", n.name, err)
	}
	log := make(faults, 1)
	started.SetLoggerV2(log, false, false, false)
	started.Start()
	n.server = started
	for began := time.Now(); !started.ReadyForConnections(readyPoll); {
		select {
		case fault := <-log:
			return fmt.Errorf("starting %s: %s", n.name, fault)
		default:
		}
		if time.Since(began) > formTime {
			return fmt.Errorf("%s does not listen", n.name)
		}
	}
	return nil
}

// faults is a server's logger, and receives why it cannot run: such as an address that is taken, of which it says nothing else and with which it
// would wait for good.
type faults chan string

// Fatalf implements server.Logger.
func (f faults) Fatalf(format string, values ...any) {
	select {
	case f <- fmt.Sprintf(format, values...):
	default:
	}
}

// Errorf, Warnf, Noticef, Debugf and Tracef implement server.Logger.
func (faults) Errorf(string, ...any)  {}
func (faults) Warnf(string, ...any)   {}
func (faults) Noticef(string, ...any) {}
func (faults) Debugf(string, ...any)  {}
func (faults) Tracef(string, ...any)  {}

func (n *node) stop() {
	if n.server != nil {
		n.server.Shutdown()
		n.server.WaitForShutdown()
		n.server = nil
	}
}

// Ready returns when the servers that run take connections and are healthy, as an operator checks before restarting the next one: they
// have caught up with their streams and consumers. One of them leads the cluster and has all of those as peers.
func (c *Cluster) Ready(ctx context.Context) error {
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for !c.ready() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("forming a cluster: %w", ctx.Err())
		}
	}
	return nil
}

func (c *Cluster) ready() bool {
	running, known := 0, 0
	for _, n := range c.nodes {
		if n.server == nil {
			continue
		}
		running++
		if !n.server.ReadyForConnections(readyPoll) || n.server.Healthz(&server.HealthzOptions{}).StatusCode != http.StatusOK {
			return false
		}
		if n.server.JetStreamIsLeader() {
			known = len(n.server.JetStreamClusterPeers())
		}
	}
	return known >= running
}

// Account returns the URLs, comma-separated, of an account that no other test uses, with a user who has Rights. When the test has ended,
// its streams are removed.
func (c *Cluster) Account(tb testing.TB) string {
	tb.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.free) == 0 {
		tb.Fatal("the cluster has no more accounts")
	}
	account := c.free[0]
	c.free = c.free[1:]
	all, administrator := c.urls("t", account), c.urls("a", account)
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), removalTime)
		defer cancel()
		if err := removeStreams(ctx, administrator); err != nil {
			tb.Errorf("removing the streams of a test: %v", err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.free = append(c.free, account)
	})
	return all
}

// URLs returns the URLs, comma-separated, of an account below Accounts, for a cluster that only its caller uses: nothing is removed.
func (c *Cluster) URLs(account int) string { return c.urls("t", account) }

// urls returns the URLs for a user of an account: t has Rights, a all rights.
func (c *Cluster) urls(user string, account int) string {
	urls := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		urls[i] = fmt.Sprintf("nats://%s%d:t@%s", user, account, n.server.Addr())
	}
	return strings.Join(urls, ",")
}

// removeStreams removes all streams of an account.
func removeStreams(ctx context.Context, urls string) error {
	nc, err := nats.Connect(urls)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	names := js.StreamNames(ctx)
	for name := range names.Name() {
		if err := js.DeleteStream(ctx, name); err != nil {
			return err
		}
	}
	return names.Err()
}

// Kill stops the server of a name, as stream information names it, without moving what it leads.
func (c *Cluster) Kill(name string) {
	for _, n := range c.nodes {
		if n.name == name {
			n.stop()
		}
	}
}

// Restart starts the servers that were killed.
func (c *Cluster) Restart() error {
	for _, n := range c.nodes {
		if n.server == nil {
			if err := n.start(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Stop stops all servers.
func (c *Cluster) Stop() {
	var stopping sync.WaitGroup
	for _, n := range c.nodes {
		stopping.Go(n.stop)
	}
	stopping.Wait()
}
