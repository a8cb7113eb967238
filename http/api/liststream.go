package api

import (
	"errors"
	"net/http"
)

// errBodyDiscarded ends the reading of a list when the request is a HEAD.
var errBodyDiscarded = errors.New("the response body is discarded")

// ListStream writes a list of unknown size with bounded memory. A list of at most ListChunk bytes has a Content-Length, like any
// response; a longer one is sent in chunks.
type ListStream struct {
	W       http.ResponseWriter
	R       *http.Request
	pending []byte
	rows    int
	// ContentType is the media type of the response.
	ContentType string
	// Begun is true once the status is sent.
	Begun bool
}

// NewListStream returns a stream that begins with head. Nothing is written until there are ListChunk bytes.
func NewListStream(w http.ResponseWriter, r *http.Request, contentType, head string) *ListStream {
	return &ListStream{W: w, R: r, pending: []byte(head), ContentType: contentType}
}

// AddRow adds an element of the array.
func (s *ListStream) AddRow(row []byte) error {
	if s.rows > 0 {
		s.pending = append(s.pending, ',')
	}
	s.rows++
	return s.Add(row)
}

// Add adds a piece of the body.
func (s *ListStream) Add(piece []byte) error {
	if len(s.pending)+len(piece) < ListChunk {
		s.pending = append(s.pending, piece...)
		return nil
	}
	if err := s.send(s.pending); err != nil {
		return err
	}
	s.pending = s.pending[:0]
	if len(piece) < ListChunk {
		s.pending = append(s.pending, piece...)
		return nil
	}
	return s.send(piece)
}

func (s *ListStream) send(b []byte) error {
	if !s.Begun {
		s.Begun = true
		s.W.Header().Set("Content-Type", s.ContentType)
		s.W.WriteHeader(http.StatusOK)
	}
	if s.R.Method == http.MethodHead {
		return errBodyDiscarded
	}
	return WriteChunks(s.W, b)
}

// End writes the pending bytes and tail.
func (s *ListStream) End(tail string) error {
	s.pending = append(s.pending, tail...)
	if !s.Begun {
		WriteWhole(s.W, http.StatusOK, s.ContentType, s.pending)
		return nil
	}
	if err := s.send(s.pending); err != nil {
		return s.Fail(err)
	}
	return nil
}

// Fail returns err, for the caller to respond with, if nothing was sent yet. Otherwise it aborts the connection: status 200 was sent,
// and the client must not take the partial list for a complete one.
func (s *ListStream) Fail(err error) error {
	if errors.Is(err, errBodyDiscarded) {
		return nil
	}
	if !s.Begun {
		return err
	}
	return AbortResponse(s.R, err)
}
