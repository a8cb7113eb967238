package local

import (
	"context"
	"strconv"

	"tutti/internal/core/datamodel"
	"tutti/internal/index/mapping"
	"tutti/internal/upstream"
	"tutti/internal/upstream/declared"
)

// AnalysisTypes is the part of the store that has the analysis types.
type AnalysisTypes interface {
	// ListAnalysisTypes returns the analysis types that match q, each version separately, and their number without Limit and Offset.
	ListAnalysisTypes(ctx context.Context, q datamodel.AnalysisTypeQuery) ([]datamodel.AnalysisType, int, error)
}

var _ upstream.Reviser = (*Client)(nil)

// typesPage is the number of versions of analysis types that are in memory at once.
const typesPage = 20

// Declared returns what all versions of the analysis types declare. Errors are those of Record.
func (c *Client) Declared(ctx context.Context) (types *mapping.Types, none string, err error) {
	var b mapping.TypesBuilder
	for q := (datamodel.AnalysisTypeQuery{Descending: true, Limit: typesPage}); ; { // in the order of their registration
		page, total, err := c.cfg.Types.ListAnalysisTypes(ctx, q)
		if err != nil {
			return nil, "", upstreamError(err)
		}
		for _, t := range page {
			declared.Schema(&b, t.Schema, declared.Source(datamodel.AnalysisTypeRef{Name: t.Name, Version: t.Version}))
		}
		if q.Offset += len(page); len(page) == 0 || q.Offset >= total {
			return b.Types(), "", nil
		}
	}
}

// Revision returns the number of versions of analysis types: none is ever changed or removed.
func (c *Client) Revision(ctx context.Context) (string, error) {
	_, total, err := c.cfg.Types.ListAnalysisTypes(ctx, datamodel.AnalysisTypeQuery{CountOnly: true})
	return strconv.Itoa(total), upstreamError(err)
}
