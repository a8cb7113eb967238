package http

import (
	"errors"
	"net/http"

	"tutti/internal/core"
)

// listChunk is how many bytes of a list are kept until they are sent.
const listChunk = 32 << 10

// errBodyDiscarded ends the reading of a list that is answered to HEAD.
var errBodyDiscarded = errors.New("nobody reads the body")

// listStream answers a list whose size nobody knows beforehand, with memory that does not grow with it. What ends within
// listChunk goes with its length, like any answer; a longer list goes piece by piece.
type listStream struct {
	w       http.ResponseWriter
	r       *http.Request
	pending []byte
	rows    int
	// contentType is that of the answer.
	contentType string
	// begun is true once the status is sent.
	begun bool
}

// newListStream makes a stream of JSON that begins with head. Nothing is written before there is a chunk.
func newListStream(w http.ResponseWriter, r *http.Request, head string) *listStream {
	return &listStream{w: w, r: r, pending: []byte(head), contentType: contentTypeJSON}
}

// addAnalysis adds a row.
func (s *listStream) addAnalysis(a core.Analysis) error {
	if s.rows > 0 {
		s.pending = append(s.pending, ',')
	}
	s.rows++
	return s.add(a.Body)
}

// add adds a piece of the body.
func (s *listStream) add(piece []byte) error {
	if len(s.pending)+len(piece) < listChunk {
		s.pending = append(s.pending, piece...)
		return nil
	}
	if err := s.send(s.pending); err != nil {
		return err
	}
	s.pending = s.pending[:0]
	if len(piece) < listChunk {
		s.pending = append(s.pending, piece...)
		return nil
	}
	return s.send(piece)
}

func (s *listStream) send(b []byte) error {
	if !s.begun {
		s.begun = true
		s.w.Header().Set("Content-Type", s.contentType)
		s.w.WriteHeader(http.StatusOK)
	}
	if s.r.Method == http.MethodHead {
		return errBodyDiscarded
	}
	return writeChunks(s.w, b)
}

// end writes what is left, and tail behind it.
func (s *listStream) end(tail string) error {
	s.pending = append(s.pending, tail...)
	if !s.begun {
		writeWhole(s.w, http.StatusOK, s.contentType, s.pending)
		return nil
	}
	if err := s.send(s.pending); err != nil {
		return s.fail(err)
	}
	return nil
}

// fail returns err to answer with while nothing is sent. Afterwards it breaks the connection off: the status is sent by
// then, and a part must never be taken for the whole.
func (s *listStream) fail(err error) error {
	if errors.Is(err, errBodyDiscarded) {
		return nil
	}
	if !s.begun {
		return err
	}
	return abortResponse(s.r, err)
}
