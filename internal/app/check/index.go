package check

import (
	"context"

	"tutti/internal/config"
)

const subjectIndex = "index"

func indexProbe(cfg config.Config) probe {
	if cfg.Index.URL == "" {
		return func(ctx context.Context) []Finding { return embeddedIndex(ctx, cfg) }
	}
	return func(ctx context.Context) []Finding {
		e, err := newEngine(cfg.Index)
		if err != nil {
			return []Finding{{subjectIndex, StatusFail, "index.caFile: " + cfg.Index.CAFile + ": " + cause(err), "set it to a PEM file of certificate authorities"}}
		}
		defer e.close()
		found := e.nodes(ctx)
		if e.node == nil {
			return found
		}
		found = append(found, e.health(ctx)...)
		for _, r := range cfg.Repositories {
			f := e.alias(ctx, r.IndexName)
			found = append(found, f)
			if f.Status == StatusOK {
				found = append(found, e.unindexed(ctx, r)...)
			}
		}
		return found
	}
}
