package schemas

import (
	"context"
	"embed"
	"encoding/json"
	"time"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
)

// seeds are the registrations of the analysis types that a new Song has.
//
//go:embed seed
var seeds embed.FS

// Seed registers the analysis types of a new Song, variantCall and sequencingRead, unless the store has any analysis type.
func (s *Service) Seed(ctx context.Context) error {
	at := s.cfg.Now().UTC().Truncate(time.Millisecond)
	var types []datamodel.AnalysisType
	for _, name := range []string{"variantCall", "sequencingRead"} {
		body, err := seeds.ReadFile("seed/" + name + ".json")
		if err != nil {
			return core.WrapError(core.CodeInternal, "reading an analysis type of Song", err)
		}
		r, err := s.parseRegistration(body)
		if err != nil {
			return err
		}
		types = append(types, datamodel.AnalysisType{
			Name: r.name, Version: 1, CreatedAt: at, Options: r.options, Schema: json.RawMessage(r.schema),
		})
	}
	added, err := s.store.AddFirstAnalysisTypes(ctx, types)
	if err == nil && added {
		s.cfg.Logger.InfoContext(ctx, "Song's analysis types registered")
	}
	return err
}
