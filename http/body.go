package http

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	nethttp "net/http"
	"strconv"
	"strings"
	"time"

	"tutti/internal/core"
)

// bodyTimeout is how long a client may take to send a body. Set per read, not per server: an answer that streams must
// not be cut by a deadline for requests.
const bodyTimeout = 60 * time.Second

const contentTypeJSON = "application/json"

// readEmptyObject reads a body that carries nothing: absent, empty or a JSON object, which is ignored (CONTRACT
// section 1). Other JSON and broken JSON are CodeInvalid, another content type CodeUnsupportedMedia.
func (h *Handler) readEmptyObject(w nethttp.ResponseWriter, r *nethttp.Request) error {
	body, err := h.readBody(w, r)
	if err != nil {
		return err
	}
	trimmed := bytes.Trim(body, " \t\r\n")
	if len(trimmed) == 0 {
		return nil
	}
	if err := jsonContent(r.Header); err != nil {
		return err
	}
	if !json.Valid(trimmed) {
		return &core.Error{
			Code: core.CodeInvalid, Message: "the body is not valid JSON", Hint: "send no body, or {}",
		}
	}
	if trimmed[0] != '{' {
		return &core.Error{
			Code: core.CodeInvalid, Message: "the body is not a JSON object", Hint: "send no body, or {}",
		}
	}
	return nil
}

func (h *Handler) readBody(w nethttp.ResponseWriter, r *nethttp.Request) ([]byte, error) {
	if r.Body == nil || r.Body == nethttp.NoBody || r.ContentLength == 0 {
		return nil, nil
	}
	// A writer without deadlines (a test's) is read without.
	control := nethttp.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	body, err := io.ReadAll(r.Body)
	if err == nil {
		return body, nil
	}
	if _, over := errors.AsType[*nethttp.MaxBytesError](err); over {
		return nil, h.tooLarge()
	}
	return nil, core.WrapError(core.CodeInvalid, "the body could not be read to its end", err)
}

// jsonContent refuses a body of another type than JSON. A client that names no type is taken at its body.
func jsonContent(header nethttp.Header) error {
	refused := &core.Error{
		Code: core.CodeUnsupportedMedia, Message: "the body is not declared as JSON",
		Hint: "send Content-Type: application/json, and no Content-Encoding",
	}
	if enc := header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return refused
	}
	declared := header.Get("Content-Type")
	if declared == "" {
		return nil
	}
	mediaType, _, err := mime.ParseMediaType(declared)
	if err != nil || (mediaType != contentTypeJSON && !strings.HasSuffix(mediaType, "+json")) {
		return refused
	}
	return nil
}

// acceptsJSON tells whether a client takes application/json, or problems, by its Accept headers (RFC 9110, 12.5.1): the
// most specific range decides.
func acceptsJSON(accept []string) bool {
	listed, best, quality := false, -1, 0.0
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		listed = true
		mediaType, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		rank := jsonRank(mediaType)
		if rank < 0 || rank < best {
			continue
		}
		q := 1.0
		if v, err := strconv.ParseFloat(params["q"], 64); err == nil {
			q = v
		}
		if rank > best {
			best, quality = rank, q
		} else {
			quality = max(quality, q)
		}
	}
	return !listed || quality > 0
}

// jsonRank says how closely a media range names JSON, -1 where it does not.
func jsonRank(mediaRange string) int {
	switch mediaRange {
	case contentTypeJSON, contentTypeProblem:
		return 2
	case "application/*":
		return 1
	case "*/*":
		return 0
	default:
		return -1
	}
}
