package embedded

import (
	"log/slog"

	"tutti/internal/index/embedded/segment"
)

// segmentWriter builds the segment of a transaction's documents in a goroutine, while the transaction is being written.
type segmentWriter struct {
	alias   *alias
	logger  *slog.Logger
	builder *segment.Builder
	page    []rowDocument
	// pages are on their way to the goroutine that uses builder, which closes done when it ends; both are nil while there are too
	// few documents for a goroutine.
	pages chan []rowDocument
	done  chan struct{}
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

// add adds a document; numbers must be ascending.
func (b *segmentWriter) add(d rowDocument) {
	b.page = append(b.page, d)
	if len(b.page) < segmentPage {
		return
	}
	if b.pages == nil {
		b.pages, b.done = make(chan []rowDocument, segmentPagesAhead), make(chan struct{})
		// It ends before the transaction does: segment and stop wait for it.
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

func (b *segmentWriter) build(page []rowDocument) {
	if b.builder == nil {
		b.builder = segment.NewBuilder(b.alias.tree.Load())
	}
	for _, d := range page {
		if err := b.builder.Add(d.number, d.id, d.document); err != nil {
			logUnsearchable(b.logger, b.alias, d.id, err)
		}
	}
}

// segment returns the segment of all added documents, nil for none.
func (b *segmentWriter) segment() *segment.Segment {
	b.stop()
	if len(b.page) > 0 {
		b.build(b.page)
	}
	if b.builder == nil {
		return nil
	}
	return b.builder.Segment()
}

// stop waits for the goroutine. It may be called more than once.
func (b *segmentWriter) stop() {
	if b.pages == nil {
		return
	}
	close(b.pages)
	<-b.done
	b.pages = nil
}

// logUnsearchable logs a document that searches do not find because its source is corrupt.
func logUnsearchable(logger *slog.Logger, a *alias, id string, err error) {
	logger.Error("embedded index cannot search a document", "index", a.name, "record_id", id, "err", err)
}
