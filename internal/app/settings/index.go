package settings

import (
	"path/filepath"

	"tutti/internal/config"
	"tutti/internal/index"
	"tutti/internal/index/elastic"
	"tutti/internal/index/embedded"
	"tutti/internal/index/mapping"
)

// IndexDir returns the folder of the embedded index.
func IndexDir(cfg config.Config) string { return filepath.Join(cfg.DataDir, "index") }

// Connection returns the connection to the search engine of a configuration.
func Connection(cfg config.Index) elastic.Connection {
	return elastic.Connection{
		URLs: cfg.URLs(), Username: cfg.Username, Password: cfg.Password.Reveal(), APIKey: cfg.APIKey.Reveal(), TLS: cfg.TLS.Files("index"),
		AWS: elastic.SignFor(cfg.AWS.Region, cfg.AWS.Service),
	}
}

// Limits returns the limits of an index that tutti makes with a configuration.
func Limits(cfg config.Index) mapping.Limits {
	l := mapping.DefaultLimits()
	l.Fields, l.Nested, l.Objects = cfg.Limits.Fields, cfg.Limits.NestedFields, cfg.Limits.NestedObjects
	return l
}

// OpenIndex connects to the search engine of a configuration. The result must be closed.
func OpenIndex(cfg config.Index) (*elastic.Index, error) {
	return elastic.New(elastic.Config{Connection: Connection(cfg), Shards: cfg.Shards, Replicas: cfg.Replicas, Limits: Limits(cfg)})
}

// InspectIndex reads the mappings of the embedded index. CodeConflict while a tutti has it open.
func InspectIndex(cfg config.Config) (*embedded.Inspection, error) {
	return embedded.Inspect(embedded.Config{Dir: IndexDir(cfg), Limits: Limits(cfg.Index)})
}

// Spec returns the index of a repository, with the mapping file as it is now.
func Spec(rc config.Repository) (index.Spec, error) {
	raw, err := rc.ReadMapping()
	return index.Spec{Alias: rc.IndexName, Mapping: raw, Known: rc.Kind().Known(), NewFields: rc.NewFields}, err
}

// DocumentTypes returns the types that a repository declares, by the paths of its documents. Fields that tutti's own mapping or the mapping
// file has keep the types that they have there.
func DocumentTypes(types *mapping.Types, rc config.Repository) *mapping.Types {
	spec, err := Spec(rc)
	if err != nil {
		spec.Mapping = rc.Mapping
	}
	known, err := spec.Fields()
	if err != nil { // of the mapping file, which pauses the repository or is the engine's alone to judge
		known = rc.Kind().Known()
	}
	return types.Below(rc.Kind().Above).Without(known)
}
