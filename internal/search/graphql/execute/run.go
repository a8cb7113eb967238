package execute

import (
	"context"
	"sync"

	"tutti/internal/index"
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/graphql/plan"
	"tutti/internal/search/graphql/response"
	"tutti/internal/search/view"
)

// Executor executes plans. Its zero value is ready for use, and safe for concurrent use.
type Executor struct {
	// chunks are buffers for documents.
	chunks output.BufferPool
	// idle has a *Run for each execution that has ended.
	idle sync.Pool
}

// Run is an execution of a plan. It is used by one goroutine at a time.
type Run struct {
	// Results are the results of the index. They are valid until Release.
	Results response.Results

	executor *Executor
	// requests are the requests with the functions that write documents while the index reads them.
	requests []index.SearchRequest
	// streams are those of the plan, and spare ones of earlier executions.
	streams []*documentStream
	// chunks are the buffers of the documents, bytesRead is the number of bytes written to them.
	chunks    [][]byte
	bytesRead int
}

// Execute sends the requests of a plan to the index in one search. Without requests, it does not call the index.
func (e *Executor) Execute(ctx context.Context, v *view.View, p *plan.Plan) *Run {
	r, _ := e.idle.Get().(*Run)
	if r == nil {
		r = &Run{executor: e}
	}
	if len(p.Requests) == 0 {
		return r
	}
	results, err := search(ctx, v, p.Kind, r.streamed(p))
	if err == nil && !answersAll(results, p.Requests) {
		err = notAllAnswered()
	}
	r.Results = response.Results{Searches: results, Err: err, Warnings: r.Results.Warnings}
	for _, s := range r.streams[:len(p.Streams)] {
		r.Results.Warnings = append(r.Results.Warnings, s.w.Warnings...)
	}
	return r
}

// streamed returns the requests of a plan whose documents are written while the index reads them.
func (r *Run) streamed(p *plan.Plan) []index.SearchRequest {
	if len(p.Streams) == 0 {
		return p.Requests
	}
	r.requests = append(r.requests[:0], p.Requests...)
	hits := make([]index.HitsRequest, len(p.Streams))
	for i, planned := range p.Streams {
		if i == len(r.streams) {
			r.streams = append(r.streams, newDocumentStream(r))
		}
		s, request := r.streams[i], &r.requests[planned.Request]
		s.selection, s.documents = planned.Selection, planned.Documents
		hits[i] = *request.Hits
		hits[i].Read = s.read
		request.Hits = &hits[i]
	}
	return r.requests
}

// Release releases the buffers of the results, which must not be used afterwards.
func (r *Run) Release() {
	if r.Results.Err != nil { // the request may still be in use
		return
	}
	for _, chunk := range r.chunks {
		r.executor.chunks.Put(chunk)
	}
	for _, s := range r.streams {
		s.reset()
	}
	clear(r.chunks)
	clear(r.requests)
	r.chunks, r.requests, r.bytesRead = r.chunks[:0], r.requests[:0], 0
	r.Results = response.Results{Warnings: r.Results.Warnings[:0]}
	r.executor.idle.Put(r)
}
