package api

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"tutti/http/media"
	"tutti/http/server"
	"tutti/internal/core"
)

const (
	// ListChunk is how many bytes of a list are kept until they are sent.
	ListChunk = 32 << 10
	// LineTimeout is how long a client may take to read a line, or a chunk of any other body, so that a client that stops reading
	// does not hold resources forever.
	LineTimeout = 60 * time.Second
)

// WriteJSON responds with body as JSON, with Content-Length. If it returns an error, nothing was written, and the handler must
// return the error.
func WriteJSON(w http.ResponseWriter, status int, body any) error {
	return writeJSONAs(w, status, media.JSON, body)
}

func writeJSONAs(w http.ResponseWriter, status int, contentType string, body any) error {
	var encoded bytes.Buffer
	if err := EncodeJSON(&encoded, body); err != nil {
		// Such as a time that JSON cannot represent.
		return core.WrapError(core.CodeInternal, "the response cannot be encoded as JSON", err)
	}
	WriteWhole(w, status, contentType, bytes.TrimSuffix(encoded.Bytes(), []byte("\n")))
	return nil
}

// WriteEncoded responds with a body that is already JSON.
func WriteEncoded(w http.ResponseWriter, body []byte) {
	WriteWhole(w, http.StatusOK, media.JSON, body)
}

// WriteWhole responds with the body that consists of pieces, with Content-Length.
func WriteWhole(w http.ResponseWriter, status int, contentType string, pieces ...[]byte) {
	length := 0
	for _, p := range pieces {
		length += len(p)
	}
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(length))
	w.WriteHeader(status)
	var conn *server.Conn
	if rw, ours := w.(*responseWriter); ours {
		conn = rw.conn
	}
	conn.WriteOnce(length, func() { _ = http.NewResponseController(w).Flush() }, func() {
		for _, p := range pieces {
			if WriteChunks(w, p) != nil {
				return // the client is gone
			}
		}
	})
}

// WriteChunks writes b with a write deadline for each ListChunk: a client that stopped reading must not hold a goroutine and a body
// forever, and a slow one may continue. Writers of tests may have no deadlines.
func WriteChunks(w http.ResponseWriter, b []byte) error {
	control := http.NewResponseController(w)
	for chunk := range slices.Chunk(b, ListChunk) {
		_ = control.SetWriteDeadline(time.Now().Add(LineTimeout))
		if _, err := w.Write(chunk); err != nil {
			return err
		}
	}
	return nil
}

// ChunkWriter is a writer that uses WriteChunks.
type ChunkWriter struct{ http.ResponseWriter }

// Write implements io.Writer.
func (w ChunkWriter) Write(b []byte) (int, error) {
	if err := WriteChunks(w.ResponseWriter, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// EncodeJSON writes v as one line. It does not escape <, > and &: responses are never interpreted as HTML, and a document full of
// them would grow sixfold.
func EncodeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}
