package evaluate

import (
	"context"
	"runtime"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/index"
	"tutti/internal/index/embedded/evaluate/match"
	"tutti/internal/index/embedded/segment"
)

// Part is one segment of an alias at one moment.
type Part struct {
	Segment *segment.Segment
	// Deleted are the documents that were rewritten or removed since the segment was built; nil for none. It is not changed.
	Deleted *roaring.Bitmap
}

// DocumentRef identifies a document.
type DocumentRef struct {
	// Number is the row number, as in segment.Segment.Numbers.
	Number uint64
	ID     string
}

// Result is a SearchResult without sources: Hits have only ID and Sort.
type Result struct {
	index.SearchResult
	// Refs are those of Hits.
	Refs []DocumentRef
	// TopRefs are those of the TopHits, by facet and bucket.
	TopRefs [][][]DocumentRef
}

// Search executes reqs over all parts. Documents that are equal in the requested order are sorted by id; without an order,
// documents are sorted by number. It returns CodeUnavailable when ctx ends and CodeInvalid for a request that cannot be executed.
func Search(ctx context.Context, parts []Part, reqs []index.SearchRequest) ([]Result, error) {
	defer runtime.KeepAlive(parts) // nothing that is returned shares memory with a segment
	p := match.NewPlan()
	asked := make([]*request, len(reqs))
	for i := range reqs {
		r, err := newRequest(p, &reqs[i], len(parts))
		if err != nil {
			return nil, err
		}
		asked[i] = r
	}
	views := newViews(parts, p)
	w := &workers{}
	for _, round := range [][]task{searchTasks(views, asked), mergeTasks(views, asked)} {
		if err := w.run(ctx, round); err != nil {
			return nil, err
		}
	}
	// Top hits are those of the merged buckets.
	if err := w.run(ctx, topHitTasks(views, asked)); err != nil {
		return nil, err
	}
	answers := make([]Result, len(asked))
	for i, r := range asked {
		answers[i] = r.finish(views)
	}
	return answers, nil
}

// FacetBytes returns how many bytes Search needs at most to count the values of facets.
func FacetBytes(parts []Part, reqs []index.SearchRequest) (bytes int64) {
	defer runtime.KeepAlive(parts)
	for i := range reqs {
		for j := range reqs[i].Facets {
			f := &reqs[i].Facets[j]
			if f.Buckets == nil && f.Cardinality == 0 {
				continue
			}
			lists := int64(1)
			if f.Buckets != nil {
				lists += int64(len(f.Buckets.Filters))
			}
			for _, part := range parts {
				if column := part.Segment.Column(f.Field.Path); column != nil {
					bytes += int64(column.Size()) * (counterBytes + lists*valueCountBytes)
				}
			}
		}
	}
	return bytes
}

// counterBytes and valueCountBytes are the sizes of counter and valueCount.
const counterBytes, valueCountBytes = 8, 8

// request is the state of a SearchRequest.
type request struct {
	req       *index.SearchRequest
	documents *match.Clause
	// totals are the numbers of matching documents by part.
	totals []int
	hits   *hitsTask
	facets []*facetTask
	result Result
}

func newRequest(p *match.Plan, ask *index.SearchRequest, parts int) (*request, error) {
	r := &request{req: ask, documents: p.Clause(ask.Filter, ""), totals: make([]int, parts)}
	if ask.Hits != nil {
		if err := checkHits(ask.Hits); err != nil {
			return nil, err
		}
		o, err := newOrder(ask.Hits.Sort)
		if err != nil {
			return nil, err
		}
		r.hits = &hitsTask{req: ask.Hits, order: o, found: make([][]uint32, parts)}
		if r.hits.after, err = o.parseAfter(ask.Hits.After); err != nil {
			return nil, err
		}
	}
	for i := range ask.Facets {
		f := &ask.Facets[i]
		if err := f.Check(); err != nil {
			return nil, err
		}
		r.facets = append(r.facets, newFacet(p, f, r.documents, parts))
	}
	r.result.Facets = make([]index.FacetResult, len(ask.Facets))
	r.result.TopRefs = make([][][]DocumentRef, len(ask.Facets))
	return r, nil
}

func newFacet(p *match.Plan, ask *index.Facet, documents *match.Clause, parts int) *facetTask {
	f := &facetTask{
		req: ask, documents: documents, exists: p.Exists(ask.Field),
		parts: make([]facetPart, parts), topDocuments: make([][][]uint32, parts),
	}
	if row := ask.Field.Row(); ask.Elements != nil {
		f.elements = p.Clause(ask.Elements, row)
		f.elementDocuments = f.elements
		if row != "" {
			f.elementDocuments = p.DocumentsWith(row, f.elements)
		}
	}
	if ask.Buckets != nil {
		for _, filter := range ask.Buckets.Filters {
			f.filters = append(f.filters, p.Clause(filter, ""))
		}
	}
	return f
}

// searchTasks returns the tasks that evaluate filters, facets and hits in each part.
func searchTasks(views []*match.View, asked []*request) []task {
	var tasks []task
	for i, v := range views {
		for _, r := range asked {
			for _, f := range r.facets {
				tasks = append(tasks, func(ctx context.Context, s *scratch) error {
					f.evaluatePart(ctx, v, &f.parts[i], s)
					return nil
				})
			}
			if r.hits == nil && !r.req.Total {
				continue
			}
			tasks = append(tasks, func(ctx context.Context, s *scratch) error {
				docs := v.LiveDocuments(ctx, r.documents, s.Scratch)
				r.totals[i] = docs.Count
				if r.hits != nil {
					r.hits.found[i] = r.hits.order.first(ctx, v, docs, r.hits.after, r.hits.limit(), s)
				}
				return nil
			})
		}
	}
	return tasks
}

// mergeTasks returns the tasks that merge the results of the parts.
func mergeTasks(views []*match.View, asked []*request) []task {
	var tasks []task
	for _, r := range asked {
		for i, f := range r.facets {
			tasks = append(tasks, func(ctx context.Context, _ *scratch) error { return f.merge(ctx, &r.result.Facets[i]) })
		}
		if r.hits != nil {
			tasks = append(tasks, func(context.Context, *scratch) error {
				r.hits.fill(views, &r.result)
				return nil
			})
		}
	}
	return tasks
}

// topHitTasks returns the tasks that find the top hits of buckets.
func topHitTasks(views []*match.View, asked []*request) []task {
	var tasks []task
	for _, r := range asked {
		for _, f := range r.facets {
			if !f.hasTopHits() {
				continue
			}
			for i, v := range views {
				tasks = append(tasks, func(ctx context.Context, s *scratch) error {
					f.findTopHits(ctx, v, i, s)
					return nil
				})
			}
		}
	}
	return tasks
}

// finish returns the result.
func (r *request) finish(views []*match.View) Result {
	if r.req.Total {
		for _, n := range r.totals {
			r.result.Total += int64(n)
		}
	}
	for i, f := range r.facets {
		if f.hasTopHits() {
			r.result.TopRefs[i] = f.mergeTopHits(views, r.result.Facets[i].Buckets)
		}
	}
	return r.result
}

// newViews returns the Views of a plan whose clauses are complete.
func newViews(parts []Part, p *match.Plan) []*match.View {
	views := make([]*match.View, len(parts))
	for i, part := range parts {
		views[i] = match.NewView(part.Segment, part.Deleted, p)
	}
	return views
}
