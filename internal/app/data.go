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
