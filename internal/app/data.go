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

// Values counts values in the documents that a caller sees. It returns CodeNotFound if the catalogue is not available.
func (d dataAPI) Values(ctx context.Context, id string, who core.Principal, most int) (map[string]core.FieldValues, error) {
	m := d.catalogues.Model(id)
	if m == nil {
		return nil, core.NewError(core.CodeNotFound, "the catalogue is not available")
	}
	v := d.searches.View(m, who)
	defer v.Log(ctx)
	return v.Values(ctx, most)
}

// shareTimeout limits shareWriteTimes at the end of the process.
const shareTimeout = 2 * time.Second

// shareWriteTimes exchanges with other processes when the indices of the repositories were last written.
func (s *storage) shareWriteTimes(ctx context.Context) error {
	var aliases []string
	for _, rc := range s.cfg.Repositories {
		aliases = append(aliases, rc.IndexName)
	}
	return s.written.Share(ctx, s.queue.Cells(), aliases)
}
