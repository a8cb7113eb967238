package api

import (
	"net/http"

	"tutti/http/server"
)

// AbortResponse aborts a response that failed after its status was sent, so that the client does not take a part for the whole. It
// panics with http.ErrAbortHandler: net/http then omits the end of the body and closes the connection. err is logged.
//
// In HTTP/1.0, which some proxies use for their backends, the end of the connection ends the body, so the connection is reset.
func AbortResponse(r *http.Request, err error) error {
	NoteError(r, err)
	if conn := server.ConnOf(r.Context()); conn != nil && !r.ProtoAtLeast(1, 1) {
		conn.Reset()
	}
	panic(http.ErrAbortHandler)
}
