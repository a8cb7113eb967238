package embedded

import (
	"context"

	"tutti/internal/core"
	"tutti/internal/index"
)

// Search implements index.Index.
func (x *Index) Search(context.Context, string, []index.SearchRequest) ([]index.SearchResult, error) {
	return nil, core.NewError(core.CodeUnsupported, "searching is not built yet")
}

// Stream implements index.Index.
func (x *Index) Stream(context.Context, string, index.StreamRequest, func([]index.Hit) error) error {
	return core.NewError(core.CodeUnsupported, "searching is not built yet")
}
