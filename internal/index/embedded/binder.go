package embedded

import (
	"tutti/internal/index/embedded/segment"
)

// binder makes one segment of the documents of a transaction, beside the transaction, which tells of them as it numbers them.
type binder struct {
	index   *Index
	alias   *alias
	builder *segment.Builder
	page    []bound
	// pages are on their way to the goroutine that builder belongs to, which closes done when it ends; both are nil as long as
	// there are so few documents that it is not worth one.
	pages chan []bound
	done  chan struct{}
}

// bound is a document and its row number. The bytes are those of the Write that waits for the transaction.
type bound struct {
	number   uint64
	id       string
	document []byte
}

const (
	// bindPage is how many documents are handed on at once.
	bindPage = 128
	// bindAhead is how many pages the transaction may be ahead.
	bindAhead = 256
)

func (x *Index) newBinder(a *alias) *binder { return &binder{index: x, alias: a} }

// add takes a document; numbers grow.
func (b *binder) add(d bound) {
	b.page = append(b.page, d)
	if len(b.page) < bindPage {
		return
	}
	if b.pages == nil {
		b.pages, b.done = make(chan []bound, bindAhead), make(chan struct{})
		// It ends before the transaction does: segment or abandon wait for it.
		go func() {
			defer close(b.done)
			for page := range b.pages {
				b.build(page)
			}
		}()
	}
	b.pages <- b.page
	b.page = make([]bound, 0, bindPage)
}

func (b *binder) build(page []bound) {
	if b.builder == nil {
		b.builder = segment.NewBuilder(b.alias.tree.Load())
	}
	for _, d := range page {
		if err := b.builder.Add(d.number, d.id, d.document); err != nil {
			b.index.leftOut(b.alias, d.id, err)
		}
	}
}

// segment returns the segment of all documents that were added, nil for none.
func (b *binder) segment() *segment.Segment {
	b.abandon()
	if len(b.page) > 0 {
		b.build(b.page)
	}
	if b.builder == nil {
		return nil
	}
	return b.builder.Segment()
}

// abandon waits for what was begun. It may be called more than once.
func (b *binder) abandon() {
	if b.pages == nil {
		return
	}
	close(b.pages)
	<-b.done
	b.pages = nil
}
