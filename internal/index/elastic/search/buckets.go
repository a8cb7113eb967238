package search

import (
	"context"
	"fmt"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/elastic/dsl"
	"tutti/internal/index/elastic/transport"
)

// maxPagedValues is the maximum number of values of a field that are read page by page, when one response cannot hold them.
const maxPagedValues = 1_000_000

// readAllBuckets reads the buckets of a facet again, page by page, if the field has more values than one response can hold, and
// keeps those with the most documents. Each page of maxBuckets values costs the cluster a pass over the documents; it happens
// only when more than maxBuckets values are requested.
func (p *searchPlan) readAllBuckets(ctx context.Context, s *subsearch, task *facetTask) error {
	if !task.More {
		return nil
	}
	f := task.Facet
	task.More = false
	var all []index.Bucket
	err := p.eachBucketPage(ctx, s.filter, f, func(page []index.Bucket) error {
		all = append(all, page...)
		if len(all) > 2*f.Buckets.Max {
			all = dsl.SortBuckets(f, all)
		}
		return nil
	})
	task.Into.Buckets = dsl.SortBuckets(f, all)
	return err
}

// eachBucketPage calls each with all buckets of f in the documents that match filter, in pages ordered by value, as of one point
// in time. each may keep their bytes.
func (p *searchPlan) eachBucketPage(ctx context.Context, filter *query.Node, f *index.Facet, each func([]index.Bucket) error) error {
	point, err := p.client.OpenPIT(ctx, p.alias)
	if err != nil {
		return transport.AsSearchError(err)
	}
	defer func() { p.client.ClosePIT(ctx, point) }()
	head := append([]byte(`{"size":0,"track_total_hits":false,"query":`), p.filter.Write(nil, filter)...)
	w := dsl.FacetWriter{Filter: &p.filter, IDField: p.idField}
	reader := dsl.FacetReader{Facet: f}
	for read := 0; ; {
		body := append([]byte(nil), head...)
		body = transport.AppendPIT(body, point)
		body = append(body, `,"aggs":{`...)
		body = append(w.Page(body, dsl.FacetName(0), f, reader.After), "}}"...)
		reader.Into.Buckets, reader.After = nil, nil
		if point, err = p.readBucketPage(ctx, body, point, &reader); err != nil {
			return err
		}
		if read += len(reader.Into.Buckets); read > maxPagedValues {
			return core.NewError(core.CodeInvalid, fmt.Sprintf("the field %s has more than %d values", f.Field.Path, maxPagedValues))
		}
		if err := each(reader.Into.Buckets); err != nil {
			return err
		}
		if reader.After == nil {
			return nil
		}
	}
}

// readBucketPage reads one page and returns the point in time of the next.
func (p *searchPlan) readBucketPage(ctx context.Context, body []byte, point string, reader *dsl.FacetReader) (string, error) {
	into := p.client.GetBuffer()
	defer p.client.PutBuffer(into)
	reply, err := p.client.Do(ctx, transport.SearchRequest(body), into)
	if err != nil {
		return point, transport.AsSearchError(err)
	}
	reader.Copy = new(dsl.Arena).Copy
	c := dsl.Reader{Data: reply.Body}
	a := dsl.Response{ReadAggs: func(c *dsl.Reader) { dsl.ReadFacets(c, []*dsl.FacetReader{reader}) }}
	a.Read(&c)
	if a.PIT != "" {
		point = a.PIT
	}
	return point, a.Check(&c)
}
