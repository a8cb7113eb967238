package execute

import (
	"tutti/internal/index"
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/graphql/selection"
)

// readChunk is the maximum size of a new buffer for documents, in bytes.
const readChunk = 64 << 10

// documentStream writes documents while the index reads them. A document that causes an error or a warning is kept as it is and
// written with the rest of the response.
type documentStream struct {
	run       *Run
	selection *selection.Set
	// documents is the maximum number of documents.
	documents int
	// read is the method document.
	read func(id string, data []byte, at int) ([]byte, int)
	w    selection.Writer
	hit  index.Hit
}

func newDocumentStream(r *Run) *documentStream {
	s := &documentStream{run: r, w: selection.Writer{Writer: &output.Writer{}}}
	s.read = s.document
	return s
}

// document writes the document at data[at] and returns where it ends; nil if it could not be written.
func (s *documentStream) document(id string, data []byte, at int) ([]byte, int) {
	if s.run.bytesRead > output.MaxBytes { // the response is too large, which its lists report
		return nil, at
	}
	w, usual := &s.w, s.selection.UsualSize()
	// Reordering needs the same space again.
	if next := 2*usual + 1<<8; cap(w.Buf)-len(w.Buf) <= next {
		w.Buf = s.run.executor.chunks.Get(max(next, min(s.documents*max(usual, 1<<9), readChunk)))
		s.run.chunks = append(s.run.chunks, w.Buf)
	}
	start := w.Mark()
	w.Dotted, s.hit.ID = false, id
	end, filled := w.Object(s.selection, data, at, &s.hit)
	if !filled || w.Dotted || w.ErrorCount() > 0 {
		w.Rollback(start)
		return nil, at
	}
	length := len(w.Buf) - start.Bytes
	s.selection.LearnSize(usual, length)
	s.run.bytesRead += length
	return w.Buf[start.Bytes:len(w.Buf):len(w.Buf)], end
}

// reset clears everything of the last execution.
func (s *documentStream) reset() {
	s.selection, s.hit = nil, index.Hit{}
	s.w.Reset()
}
