//go:build !services

package app_test

import (
	"context"
	"encoding/json"

	"tutti/internal/core"
)

// Mapping fails while the engine is down, with the error of a refused connection.
func (x *faultyIndex) Mapping(ctx context.Context, alias string) (json.RawMessage, error) {
	if x.down.Load() {
		return nil, core.WrapError(core.CodeUnavailable, "the index does not answer", core.ErrIndexUnreachable)
	}
	return x.Index.Mapping(ctx, alias)
}

// dropAtEnd removes an index at the end of the test; the embedded one is removed with the world's folder.
func (w *world) dropAtEnd(string) {}
