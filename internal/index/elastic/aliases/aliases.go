package aliases

import (
	"log/slog"
	"sync"

	"tutti/internal/index/elastic/transport"
	"tutti/internal/index/mapping"
)

// Aliases reads and changes what the cluster stores about aliases: their mappings, indices and shards. It is safe for concurrent use.
type Aliases struct {
	client *transport.Client
	logger *slog.Logger
	// Grown reports that the mapping of an alias has changed.
	Grown func(alias string)
	// Types are the types of fields that documents add.
	Types  mapping.Declarations
	states sync.Map // alias to *Alias
}

// New returns the metadata of client's cluster. grown is called with an alias after its mapping was extended or the alias was moved.
func New(client *transport.Client, logger *slog.Logger, grown func(alias string)) *Aliases {
	return &Aliases{client: client, logger: logger, Grown: grown}
}

// Alias returns the cached state of alias.
func (m *Aliases) Alias(alias string) *Alias {
	st, ok := m.states.Load(alias)
	if !ok {
		st, _ = m.states.LoadOrStore(alias, newAliasState())
	}
	return st.(*Alias)
}

// Forget removes the cached state of an alias that was moved or removed. Calls in progress may still use it.
func (m *Aliases) Forget(alias string) { m.states.Delete(alias) }

// seeIndex notes the name of the index behind alias, and forgets the mapping of another one. What has the name of the alias itself is not behind it.
func (m *Aliases) seeIndex(alias, name string) {
	st := m.Alias(alias)
	for seen := st.Seen(); seen.Index != name && name != alias; seen = st.Seen() {
		if st.seen.CompareAndSwap(seen, &Seen{Index: name}) {
			return
		}
	}
}
