package search

import (
	"context"

	"tutti/internal/index"
	"tutti/internal/index/elastic/transport"
)

const (
	// freeBytes is the size up to which a response is read without a reservation.
	freeBytes = 256 << 10
	// DefaultMaxSourceBytes is the default of Searcher.MaxSourceBytes: as many bytes as a response of GraphQL may have.
	DefaultMaxSourceBytes = 64 << 20
)

// memory is the memory of one Search: of the response that is being read, and of the results that were read. It is reserved before it is
// used.
type memory struct {
	reserve func(ctx context.Context, bytes int64) error
	// reserved is what was reserved, held the size of the results.
	reserved, held int64
}

// newMemory returns the memory of a Search for reqs.
func newMemory(reqs []index.SearchRequest) *memory {
	if len(reqs) == 0 || reqs[0].Reserve == nil {
		return &memory{}
	}
	return &memory{reserve: reqs[0].Reserve}
}

// need reserves n bytes in all, unless as many are reserved.
func (m *memory) need(ctx context.Context, n int64) error {
	if m.reserve == nil || n <= m.reserved {
		return nil
	}
	if err := m.reserve(ctx, n); err != nil {
		return err
	}
	m.reserved = n
	return nil
}

// response returns the bound of a response of at most limit bytes. A response that is larger than what is reserved is reserved in two
// steps, while this Search holds little.
func (m *memory) response(ctx context.Context, limit int64) transport.Grow {
	if m.reserve == nil {
		return nil
	}
	return func(read int64) (allowed int64, err error) {
		if free := max(freeBytes, (m.reserved-m.held)/pageWeight); read < free {
			return free, nil
		}
		allowed = limit
		if read < maxHitsBytes {
			allowed = min(limit, maxHitsBytes)
		}
		return allowed + 1, m.need(ctx, m.held+pageWeight*allowed)
	}
}

// hold adds the documents of a result.
func (m *memory) hold(hits []index.Hit) {
	for i := range hits {
		m.held += int64(len(hits[i].Source))
	}
}
