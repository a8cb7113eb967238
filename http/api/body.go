package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"

	"tutti/http/media"
	"tutti/internal/core"
)

// ReadEmptyObject reads a body without information: absent, empty or a JSON object, which is ignored (CONTRACT section 1). Other
// and invalid JSON are CodeInvalid, another content type CodeUnsupportedMedia.
func ReadEmptyObject(r *http.Request) error {
	_, err := ReadTrigger(r)
	return err
}

// ReadTrigger is ReadEmptyObject for a request that triggers work, and returns its X-Request-Id.
func ReadTrigger(r *http.Request) (requestID string, err error) {
	ex := exchangeOf(r.Context())
	return ex.requestID, ex.readIgnored(r, false)
}

// ReadEmptyObjectOrNull is ReadEmptyObject that also accepts null, which axios sends when it is called without a body.
func ReadEmptyObjectOrNull(r *http.Request) error {
	return exchangeOf(r.Context()).readIgnored(r, true)
}

func (ex *exchange) readIgnored(r *http.Request, null bool) error {
	body, _, err := ex.receive(r)
	if err != nil {
		return err
	}
	trimmed := bytes.Trim(body, " \t\r\n")
	if len(trimmed) == 0 {
		return nil
	}
	if err := media.JSONContent(r.Header); err != nil {
		return err
	}
	if !json.Valid(trimmed) {
		return &core.Error{
			Code: core.CodeInvalid, Message: "the body is not valid JSON", Hint: "send no body, or {}",
		}
	}
	if trimmed[0] != '{' && (!null || string(trimmed) != "null") {
		return &core.Error{
			Code: core.CodeInvalid, Message: "the body is not a JSON object", Hint: "send no body, or {}",
		}
	}
	return nil
}

// ReadJSON reads a body that must not be empty and must be declared as JSON. It does not parse it.
func ReadJSON(r *http.Request) ([]byte, error) {
	body, _, err := ReceiveJSON(r)
	return body, err
}

// ReceiveJSON is ReadJSON with the release function of receive.
func ReceiveJSON(r *http.Request) (body []byte, release func(), err error) {
	body, release, err = exchangeOf(r.Context()).receive(r)
	if err != nil {
		return nil, release, err
	}
	if len(bytes.Trim(body, " \t\r\n")) == 0 {
		return nil, release, &core.Error{Code: core.CodeInvalid, Message: "the body is empty", Hint: "send a JSON object"}
	}
	return body, release, media.JSONContent(r.Header)
}

// ReadBody reads a whole body. Its share of Config.Bodies is released at the end of the request.
func ReadBody(r *http.Request) ([]byte, error) {
	body, _, err := exchangeOf(r.Context()).receive(r)
	return body, err
}

// receive reads a whole body. release returns its share of Config.Bodies before the end of the request.
func (ex *exchange) receive(r *http.Request) (body []byte, release func(), err error) {
	release = func() {}
	cfg := &ex.router.cfg
	if !hasBody(r) {
		return nil, release, nil
	}
	size := r.ContentLength
	if size < 0 { // no Content-Length
		size = cfg.MaxBodyBytes
	}
	if release, err = ex.acquire(r, cfg.Bodies, size); err != nil {
		return nil, release, err
	}
	var read bytes.Buffer
	if r.ContentLength > SmallBody { // a small body is outside the memory budget; it is allocated as it arrives
		read.Grow(int(min(r.ContentLength, cfg.MaxBodyBytes)) + bytes.MinRead)
	}
	_, err = read.ReadFrom(r.Body)
	if err == nil {
		return read.Bytes(), release, nil
	}
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return nil, release, tooLarge(cfg.MaxBodyBytes)
	}
	return nil, release, bodyReadError(err)
}
