package embedded

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded/evaluate"
	"tutti/internal/index/embedded/indexfile"
)

const (
	// batchBytes is the capacity of a batch of a Stream, in bytes.
	batchBytes = 512 << 10
	// largeDocument is the size in bytes from which a document is read with memory of Config.Memory.
	largeDocument = indexfile.LargeDocument
	// largeWeight is the memory of a large document that is passed on, as a multiple of its size: the document, and what its reader
	// makes of it.
	largeWeight = 3
)

// unbounded is the memory of an Index without one.
type unbounded struct{}

// Acquire returns at once.
func (unbounded) Acquire(context.Context, core.Caller, int64) (release func(), err error) {
	return func() {}, nil
}

// ownCaller returns the caller of a purpose of the process itself, which never waits for its first document.
func ownCaller(purpose string) core.Caller { return core.Caller{ID: "index: " + purpose, Known: true} }

// documents reads the documents of rows one by one, for one reader.
type documents struct {
	memory core.Memory
	large  *bufferPool
	rows   indexfile.Rows
	caller core.Caller
	// weight is the memory of a large document as a multiple of its size.
	weight int64
	parts  *projection
}

// read calls use with the document of a row, which is valid until use returns. Small documents share the capacity of small.
func (d *documents) read(ctx context.Context, row indexfile.Row, small []byte, use func(doc []byte) error) error {
	size, err := row.Size()
	if err != nil {
		return err
	}
	if size < largeDocument {
		doc, err := row.AppendDocument(small[:0])
		if err != nil {
			return err
		}
		return use(doc)
	}
	release, err := d.memory.Acquire(ctx, d.caller, d.weight*int64(size))
	if err != nil {
		return err
	}
	defer release()
	buf := d.large.get(size)
	defer func() { d.large.put(buf) }()
	doc, err := row.AppendDocument(buf[:0])
	if err != nil {
		return err
	}
	return use(doc)
}

// bufferPool holds buffers that are not in use, until the next garbage collections.
type bufferPool struct{ pool sync.Pool }

// get returns an empty buffer of at least n bytes.
func (p *bufferPool) get(n int) []byte {
	if b, _ := p.pool.Get().(*[]byte); b != nil && cap(*b) >= n {
		return (*b)[:0]
	}
	return make([]byte, 0, n+n/8) // also for the next, which may be a little larger
}

func (p *bufferPool) put(b []byte) { p.pool.Put(&b) }

// batches passes the documents of a Stream on, in batches of at most batchBytes or one large document.
type batches struct {
	documents
	// batch has the documents of the hits that are not passed on.
	batch []byte
	each  func([]index.Hit) error
}

// add sets the sources of hits and passes them on.
func (b *batches) add(ctx context.Context, places []evaluate.DocumentRef, hits []index.Hit) error {
	from := 0 // hits before it are passed on
	flush := func(to int) error {
		if from == to {
			return nil
		}
		err := b.each(hits[from:to])
		clear(hits[from:to]) // they hold large documents
		from, b.batch = to, b.batch[:0]
		return err
	}
	for i, p := range places {
		if cap(b.batch)-len(b.batch) < largeDocument {
			if err := flush(i); err != nil {
				return err
			}
		}
		err := b.read(ctx, b.rows.Get(p.Number), b.batch[len(b.batch):], func(doc []byte) error {
			if len(doc) < largeDocument { // it is in the batch
				hits[i].Source = slices.Clip(doc)
				b.batch = b.batch[:len(b.batch)+len(doc)]
				return nil
			}
			if b.parts != nil {
				start := len(b.batch)
				if batch, fits := b.parts.append(b.batch, doc); fits {
					b.batch = batch
					hits[i].Source = batch[start:len(batch):len(batch)]
					return nil
				}
			}
			if err := flush(i); err != nil {
				return err
			}
			hits[i].Source = doc
			return flush(i + 1)
		})
		if err != nil {
			return err
		}
	}
	return flush(len(places))
}

// maxSources bounds the total size of the documents that one Search returns, in bytes.
const maxSources = 128 << 20

// sources reads the documents of hits, up to maxSources bytes.
type sources struct {
	documents
	// found are the rows of the documents that are not read yet.
	found []indexfile.Row
	bytes int
	// chunk has the last of the small documents, small is the buffer to read them.
	chunk, small []byte
}

// find finds the rows of the hits in results, and returns the total size of their documents in bytes.
func (s *sources) find(answers []evaluate.Result, reqs []index.SearchRequest) (size int64, err error) {
	err = eachHits(answers, reqs, func(refs []evaluate.DocumentRef, _ []index.Hit, _ *index.HitsRequest, _ index.Source) error {
		for _, ref := range refs {
			row := s.rows.Get(ref.Number)
			n, err := row.Size()
			if err != nil {
				return err
			}
			s.found, size = append(s.found, row), size+int64(n)
		}
		return nil
	})
	return size, err
}

// fill sets the sources of the hits in results. It must be called once, after find.
func (s *sources) fill(ctx context.Context, answers []evaluate.Result, reqs []index.SearchRequest) error {
	return eachHits(answers, reqs, func(refs []evaluate.DocumentRef, hits []index.Hit, asked *index.HitsRequest, source index.Source) error {
		s.parts = newProjection(source.Paths)
		rows := s.found[:len(refs)]
		s.found = s.found[len(refs):]
		if asked == nil {
			return s.fillHits(ctx, rows, hits, nil)
		}
		return s.fillHits(ctx, rows, hits, asked.Read)
	})
}

// eachHits calls do with each list of hits in results that needs documents; asked is nil for top hits.
func eachHits(answers []evaluate.Result, reqs []index.SearchRequest,
	do func(refs []evaluate.DocumentRef, hits []index.Hit, asked *index.HitsRequest, source index.Source) error,
) error {
	for i := range answers {
		answer, req := &answers[i], &reqs[i]
		if req.Hits != nil && !req.Hits.Source.None {
			if err := do(answer.Refs, answer.Hits, req.Hits, req.Hits.Source); err != nil {
				return err
			}
		}
		for j := range req.Facets {
			b := req.Facets[j].Buckets
			if b == nil || b.TopHits == 0 || b.TopSource.None {
				continue
			}
			for k, refs := range answer.TopRefs[j] {
				if err := do(refs, answer.Facets[j].Buckets[k].TopHits, nil, b.TopSource); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (s *sources) fillHits(ctx context.Context, rows []indexfile.Row, hits []index.Hit, read func(id string, data []byte, at int) ([]byte, int)) error {
	for i, row := range rows {
		if i > 0 && hits[i-1].Read && len(hits[i-1].Source) == 0 { // no more is needed
			hits[i].Source, hits[i].Read = hits[i-1].Source, true
			continue
		}
		err := s.read(ctx, row, s.small, func(doc []byte) error {
			if len(doc) < largeDocument {
				s.small = doc
			}
			if read != nil {
				if kept, _ := read(hits[i].ID, doc, 0); kept != nil {
					hits[i].Source, hits[i].Read = kept, true
					return nil
				}
			}
			hits[i].Source = s.keep(doc)
			return nil
		})
		if err != nil {
			return err
		}
		if s.bytes += len(hits[i].Source); s.bytes > maxSources {
			return errManySources()
		}
	}
	return nil
}

// chunkBytes is the size of the memory that small documents share.
const chunkBytes = 64 << 10

// keep returns a copy of the requested part of a document.
func (s *sources) keep(doc []byte) []byte {
	if len(doc) >= largeDocument {
		part := s.large.get(len(doc))
		defer func() { s.large.put(part) }()
		if kept, fits := s.parts.append(part, doc); fits {
			return bytes.Clone(kept)
		}
		return bytes.Clone(doc)
	}
	if cap(s.chunk)-len(s.chunk) < len(doc) {
		s.chunk = make([]byte, 0, max(chunkBytes, len(doc)))
	}
	start := len(s.chunk)
	var fits bool
	if s.chunk, fits = s.parts.append(s.chunk, doc); !fits {
		s.chunk = append(s.chunk[:start], doc...)
	}
	return s.chunk[start:len(s.chunk):len(s.chunk)]
}
