package admin

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/core"
	"tutti/internal/index/elastic/aliases"
	"tutti/internal/index/elastic/flavour"
	"tutti/internal/index/elastic/transport"
	"tutti/internal/index/mapping"
)

// cluster is what a Reporter, a Creator and a Mover share.
type cluster struct {
	client *transport.Client
	meta   *aliases.Aliases
	cfg    Config
}

// Each type is for other callers: of health and plans, of the start and of writes, and of rebuilds. All methods are safe for concurrent use.
type (
	// Reporter reports on the cluster, on what an alias has, and how that differs from its configuration.
	Reporter struct{ *cluster }
	// Creator creates indices with their aliases, and extends their mappings.
	Creator struct {
		*cluster
		reporter *Reporter
	}
	// Mover moves an alias to an index that a rebuild has filled, or to one that others have made.
	Mover struct{ *cluster }
)

// Config configures what New returns. All fields are required.
type Config struct {
	// Shards is the number of primary shards of an index created by Ensure, Replicas the number of copies of each besides the primary.
	Shards, Replicas int
	// Limits are those of an index created by Ensure.
	Limits mapping.Limits
	Logger *slog.Logger
	// Now is the clock for the names of physical indices.
	Now func() time.Time
}

// New returns what works on the aliases of a cluster.
func New(client *transport.Client, meta *aliases.Aliases, cfg Config) (*Reporter, *Creator, *Mover) {
	c := &cluster{client: client, meta: meta, cfg: cfg}
	r := &Reporter{c}
	return r, &Creator{c, r}, &Mover{c}
}

// Ping returns nil when the cluster answers, core.CodeIndexBlocked when it rejects the credentials, otherwise
// core.CodeUnavailable.
func (a *Reporter) Ping(ctx context.Context) error {
	end, err := a.client.BeginCall()
	if err != nil {
		return err
	}
	defer end()
	_, err = a.client.Do(ctx, esapi.ClusterHealthRequest{FilterPath: []string{"status"}}, nil)
	switch failure := transport.ErrorOf(err); {
	case err == nil, failure != nil && failure.Status == http.StatusForbidden && failure.Type == transport.TypeSecurity:
		// The cluster knows a user who lacks the privilege to read the cluster's health. AWS has no such error type.
		return nil
	case core.CodeOf(err) == core.CodeIndexBlocked, core.CodeOf(err) == core.CodeUnavailable && core.HintOf(err) != "":
		return err
	default:
		return core.WrapError(core.CodeUnavailable, "the index does not answer", err)
	}
}

// Refresh makes all earlier writes visible to Count, Scan and searches.
func (a *Reporter) Refresh(ctx context.Context, alias string) error {
	end, err := a.client.Begin(alias)
	if err != nil {
		return err
	}
	defer end()
	reply, err := a.client.Do(ctx, esapi.IndicesRefreshRequest{Index: []string{alias}, FilterPath: []string{"_shards.failed"}}, nil)
	if err != nil {
		return err
	}
	return reply.CheckShards(alias)
}

// Mapping returns the alias' mapping, merged from all indices if the name is an alias or data stream of several, with the fields that the
// engine can count (flavour.Engine.Countable).
func (a *Reporter) Mapping(ctx context.Context, alias string) (json.RawMessage, error) {
	end, err := a.client.Begin(alias)
	if err != nil {
		return nil, err
	}
	defer end()
	all, err := a.meta.Mappings(ctx, alias)
	if err != nil {
		return nil, err
	}
	raw, err := aliases.MergeMappings(alias, all)
	if err != nil || !flavour.MayMiscount(raw) {
		return raw, err
	}
	engine, err := a.client.Engine(ctx)
	if err != nil {
		return nil, err
	}
	return engine.Countable(raw)
}

// Checkpoint returns the identity of the alias' index and its highest sequence number over all shards, or core.CheckpointNone.
// Documents written later have higher numbers in their shards. It is "" unless the alias has exactly one index and every primary
// shard answered: an unavailable shard may have higher numbers, and a scan up to the checkpoint would miss those documents.
func (a *Reporter) Checkpoint(ctx context.Context, alias string) (string, error) {
	end, err := a.client.Begin(alias)
	if err != nil {
		return "", err
	}
	defer end()
	one, err := a.meta.Physical(ctx, alias)
	if err != nil {
		return "", err
	}
	stats, err := a.meta.Shards(ctx, alias)
	if err != nil {
		return "", err
	}
	highest, ok := stats.Highest(one.UUID, one.Primaries)
	switch {
	case !ok:
		return "", nil
	case highest < 0:
		return core.CheckpointNone, nil
	default:
		return one.UUID + "/" + strconv.FormatInt(highest, 10), nil
	}
}

// Identity returns the name and the UUID of the alias' index, "" if the alias has several indices or the cluster does not return
// them.
func (a *Reporter) Identity(ctx context.Context, alias string) (string, error) {
	end, err := a.client.Begin(alias)
	if err != nil {
		return "", err
	}
	defer end()
	one, err := a.meta.Physical(ctx, alias)
	if err != nil || one.UUID == "" {
		return "", err
	}
	return identityOf(one.Name, one.UUID), nil
}

func identityOf(name, uuid string) string { return name + "/" + uuid }

// Limits returns the limits of the index of an alias, of several the lowest. CodeIndexBlocked when the alias is missing.
func (a *Reporter) Limits(ctx context.Context, alias string) (mapping.Limits, error) {
	end, err := a.client.Begin(alias)
	if err != nil {
		return mapping.Limits{}, err
	}
	defer end()
	var found map[string]json.RawMessage
	settings := esapi.IndicesGetSettingsRequest{Index: []string{alias}, Name: []string{"index.mapping.*"}, IncludeDefaults: new(true)}
	if err := a.client.Fetch(ctx, settings, &found); err != nil {
		return mapping.Limits{}, err
	}
	lowest := mapping.Limits{}
	for _, one := range found {
		if own := mapping.EngineLimits().With(one); lowest.Fields == 0 {
			lowest = own
		} else {
			lowest = lowest.Lower(own)
		}
	}
	if lowest.Fields == 0 { // the cluster leaves out an index whose settings name none
		lowest = mapping.EngineLimits()
	}
	engine, err := a.client.Engine(ctx)
	lowest.AllTerms = err == nil && engine.FreeForm == mapping.FlatObject
	return lowest, err
}
