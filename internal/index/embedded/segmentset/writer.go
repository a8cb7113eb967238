package segmentset

import (
	"tutti/internal/index/embedded/segment"
	"tutti/internal/index/mapping"
)

// Writer builds the segment of a transaction's documents in a goroutine, while the transaction is being written.
type Writer struct {
	tree         func() *mapping.Field
	unsearchable func(id string, err error)
	builder      *segment.Builder
	page         []rowDocument
	// pages are on their way to the goroutine that uses builder, which closes done when it ends; both are nil while there are too
	// few documents for a goroutine.
	pages chan []rowDocument
	done  chan struct{}
}

// NewWriter returns a Writer of documents that are valid in the mapping tree. unsearchable is called, also by the goroutine, with each
// document that cannot be added because it is corrupt; searches do not find it.
func NewWriter(tree func() *mapping.Field, unsearchable func(id string, err error)) *Writer {
	return &Writer{tree: tree, unsearchable: unsearchable}
}

// rowDocument is a document and its row number. The bytes belong to the Write that waits for the transaction.
type rowDocument struct {
	number   uint64
	id       string
	document []byte
}

const (
	// segmentPage is the number of documents passed to the goroutine at once.
	segmentPage = 128
	// segmentPagesAhead is the number of pages by which the transaction may be ahead.
	segmentPagesAhead = 256
)

// Add adds a document and its row number; numbers must be ascending. The bytes must not change until Segment or Stop returns.
func (b *Writer) Add(number uint64, id string, document []byte) {
	b.page = append(b.page, rowDocument{number: number, id: id, document: document})
	if len(b.page) < segmentPage {
		return
	}
	if b.pages == nil {
		b.pages, b.done = make(chan []rowDocument, segmentPagesAhead), make(chan struct{})
		// It ends before the transaction does: Segment and Stop wait for it.
		go func() {
			defer close(b.done)
			for page := range b.pages {
				b.build(page)
			}
		}()
	}
	b.pages <- b.page
	b.page = make([]rowDocument, 0, segmentPage)
}

func (b *Writer) build(page []rowDocument) {
	if b.builder == nil {
		b.builder = segment.NewBuilder(b.tree())
	}
	for _, d := range page {
		if err := b.builder.Add(d.number, d.id, d.document); err != nil {
			b.unsearchable(d.id, err)
		}
	}
}

// Segment returns the segment of all added documents, nil for none.
func (b *Writer) Segment() *segment.Segment {
	b.Stop()
	if len(b.page) > 0 {
		b.build(b.page)
	}
	if b.builder == nil {
		return nil
	}
	return b.builder.Segment()
}

// Stop waits for the goroutine. It may be called more than once.
func (b *Writer) Stop() {
	if b.pages == nil {
		return
	}
	close(b.pages)
	<-b.done
	b.pages = nil
}
