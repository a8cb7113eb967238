//go:build !services

package app_test

import (
	"context"
	"encoding/json"

	"tutti/internal/core"
)

// Mapping fails while the engine is down, as a connection that is refused does.
func (x *spoiltIndex) Mapping(ctx context.Context, alias string) (json.RawMessage, error) {
	if x.down.Load() {
		return nil, core.WrapError(core.CodeUnavailable, "the index does not answer", core.ErrIndexUnreachable)
	}
	return x.Index.Mapping(ctx, alias)
}

// forgets removes an index at the end of the test; this one goes with the world's folder.
func (w *world) forgets(string) {}
