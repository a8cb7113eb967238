package app

import (
	"context"
	"time"

	"tutti/internal/core"
	"tutti/internal/index/lastwrite"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/view"
)

// dataAPI describes the documents of the catalogues that are available.
type dataAPI struct {
	catalogues *catalogue.Registry
	searches   *view.Service
	written    *lastwrite.Index
}

// IndexedAt returns when the index of a catalogue was last written, the zero time if that is unknown.
func (d dataAPI) IndexedAt(id string) time.Time {
	m := d.catalogues.Model(id)
	if m == nil {
		return time.Time{}
	}
	return d.written.At(m.Definition().Index)
}

// Values counts values of some fields, of all for nil, in the documents that a caller sees. It returns CodeNotFound if the catalogue is not available.
func (d dataAPI) Values(ctx context.Context, id string, who core.Principal, fields []string, most int) (map[string]core.FieldValues, error) {
	m := d.catalogues.Model(id)
	if m == nil {
		return nil, core.NewError(core.CodeNotFound, "the catalogue is not available")
	}
	v := d.searches.View(m, who)
	defer v.Log(ctx)
	return v.Values(ctx, fields, most)
}

// shareTimeout limits tryShareWriteTimes, which neither a start nor an end should wait for.
const shareTimeout = 2 * time.Second

// tryShareWriteTimes exchanges with other processes when the indices of the repositories were last written, and logs why it cannot.
func (s *storage) tryShareWriteTimes(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, shareTimeout)
	defer cancel()
	var aliases []string
	for _, rc := range s.cfg.Repositories {
		aliases = append(aliases, rc.IndexName)
	}
	if err := s.written.Share(within, s.queue.Cells(), aliases); err != nil && ctx.Err() == nil {
		s.log.Warn("sharing when indices were last written", "err", err)
	}
}
