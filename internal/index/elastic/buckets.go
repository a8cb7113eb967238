package elastic

import (
	"context"
	"fmt"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/elastic/transport"
)

// maxPagedValues is the maximum number of values of a field that are read page by page, when one response cannot hold them.
const maxPagedValues = 1_000_000

// readAllBuckets reads the buckets of a facet again, page by page, if the field has more values than one response can hold, and
// keeps those with the most documents. Each page of maxBuckets values costs the cluster a pass over the documents; it happens
// only when more than maxBuckets values are requested.
func (x *Index) readAllBuckets(ctx context.Context, alias string, p *searchPlan, s *subsearch, task *facetTask) error {
	if !task.more {
		return nil
	}
	f := task.facet
	task.more = false
	var all []index.Bucket
	err := x.eachBucketPage(ctx, alias, p, s.filter, f, func(page []index.Bucket) error {
		all = append(all, page...)
		if len(all) > 2*f.Buckets.Max {
			all = sorted(f, all)
		}
		return nil
	})
	task.into.Buckets = sorted(f, all)
	return err
}

// eachBucketPage calls each with all buckets of f in the documents that match filter, in pages ordered by value, as of one point
// in time. each may keep their bytes.
func (x *Index) eachBucketPage(ctx context.Context, alias string, p *searchPlan, filter *query.Node, f *index.Facet, each func([]index.Bucket) error) error {
	point, err := x.client.OpenPIT(ctx, alias)
	if err != nil {
		return transport.AsSearchError(err)
	}
	defer func() { x.client.ClosePIT(ctx, point) }()
	head := append([]byte(`{"size":0,"track_total_hits":false,"query":`), p.filter.write(nil, filter)...)
	w := facetWriter{filter: &p.filter, idField: p.idField}
	reader := facetReader{facet: f}
	for read := 0; ; {
		body := append([]byte(nil), head...)
		body = transport.AppendPIT(body, point)
		body = append(body, `,"aggs":{`...)
		body = append(w.page(body, string(facetPrefix)+"0", f, reader.after), "}}"...)
		reader.into.Buckets, reader.after = nil, nil
		if point, err = x.readBucketPage(ctx, body, point, &reader); err != nil {
			return err
		}
		if read += len(reader.into.Buckets); read > maxPagedValues {
			return core.NewError(core.CodeInvalid, fmt.Sprintf("the field %s has more than %d values", f.Field.Path, maxPagedValues))
		}
		if err := each(reader.into.Buckets); err != nil {
			return err
		}
		if reader.after == nil {
			return nil
		}
	}
}

// readBucketPage reads one page and returns the point in time of the next.
func (x *Index) readBucketPage(ctx context.Context, body []byte, point string, reader *facetReader) (string, error) {
	into := x.client.GetBuffer()
	defer x.client.PutBuffer(into)
	reply, err := x.client.Do(ctx, transport.SearchRequest(body), into)
	if err != nil {
		return point, transport.AsSearchError(err)
	}
	reader.keep = new(arena).copy
	c := jsonReader{data: reply.Body}
	a := searchResponse{readAggs: func(c *jsonReader) { readFacets(c, []*facetReader{reader}) }}
	a.read(&c)
	if a.pit != "" {
		point = a.pit
	}
	return point, a.check(&c)
}

// patternValues returns, by path, the values of the fields whose patterns the cluster cannot match.
func (x *Index) patternValues(ctx context.Context, alias string, filters []*query.Node) (map[string][]string, error) {
	fields := make(map[string]query.Field)
	for _, n := range filters {
		patternFields(n, fields)
	}
	if len(fields) == 0 {
		return nil, nil
	}
	values := make(map[string][]string, len(fields))
	for path, field := range fields {
		f := index.Facet{Field: field, Buckets: &index.Buckets{Max: index.MaxBuckets}}
		err := x.eachBucketPage(ctx, alias, new(searchPlan), nil, &f, func(page []index.Bucket) error {
			for i := range page {
				values[path] = append(values[path], page[i].Key)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return values, nil
}

// patternFields adds the fields below n whose values are needed to match patterns.
func patternFields(n *query.Node, fields map[string]query.Field) {
	if n == nil {
		return
	}
	if matchesLocally(n) {
		fields[n.Field.Path] = n.Field
	}
	for _, child := range n.Children {
		patternFields(child, fields)
	}
}

// filtersOf returns all filters of reqs.
func filtersOf(reqs []index.SearchRequest) []*query.Node {
	var filters []*query.Node
	for i := range reqs {
		filters = append(filters, reqs[i].Filter)
		for j := range reqs[i].Facets {
			f := &reqs[i].Facets[j]
			filters = append(filters, f.Elements)
			if f.Buckets != nil {
				filters = append(filters, f.Buckets.Filters...)
			}
		}
	}
	return filters
}
