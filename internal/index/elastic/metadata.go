package elastic

import (
	"log/slog"
	"sync"

	"tutti/internal/index/elastic/transport"
)

// metadata reads and changes what the cluster stores about aliases: their mappings, indices and shards. It is safe for concurrent use.
type metadata struct {
	client *transport.Client
	logger *slog.Logger
	grown  func(alias string)
	states sync.Map // alias to *aliasState
}

// newMetadata returns the metadata of client's cluster. grown is called with an alias after its mapping was extended.
func newMetadata(client *transport.Client, logger *slog.Logger, grown func(alias string)) *metadata {
	return &metadata{client: client, logger: logger, grown: grown}
}

// state returns the cached state of alias.
func (m *metadata) state(alias string) *aliasState {
	st, ok := m.states.Load(alias)
	if !ok {
		st, _ = m.states.LoadOrStore(alias, newAliasState())
	}
	return st.(*aliasState)
}
