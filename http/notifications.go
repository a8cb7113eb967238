package http

import (
	"bytes"
	"net/http"

	"tutti/internal/core"
)

const (
	// headerSignature carries the HMAC-SHA256 of a notification's body, as sha256=<hex>.
	headerSignature = "X-Signature-256"
	// maxListedErrors is how many errors a response lists; an array of events may have thousands.
	maxListedErrors = 100
)

// notifiedBody is the 202 of a notification.
type notifiedBody struct {
	Successful bool   `json:"successful"`
	RequestID  string `json:"requestId"`
	Accepted   int    `json:"accepted"`
	// NotUnderstood counts all events at fault, of which Faults lists the first.
	NotUnderstood int               `json:"notUnderstood"`
	Faults        []core.EventError `json:"faults"`
}

// notUnderstoodError is the error of a notification without a valid event.
type notUnderstoodError struct {
	cause      *core.Error
	violations []core.EventError
}

// Error returns the message of the first fault.
func (e *notUnderstoodError) Error() string { return e.cause.Error() }

// Unwrap returns the Error that has the code.
func (e *notUnderstoodError) Unwrap() error { return e.cause }

// notify accepts a repository's notification (CONTRACT section 1). The body is passed on unchanged: the signature covers its
// bytes.
func (h *Handler) notify(w http.ResponseWriter, r *http.Request) error {
	repository, err := pathParam(r, "repositoryCode", "repositoryCode")
	if err != nil {
		return err
	}
	body, err := h.readBody(r)
	if err != nil {
		return err
	}
	if len(bytes.Trim(body, " \t\r\n")) == 0 {
		return &core.Error{
			Code: core.CodeInvalid, Message: "the body is empty", Hint: "send one event as a JSON object, or an array of them",
		}
	}
	if err := jsonContent(r.Header); err != nil {
		return err
	}
	requestID := exchangeOf(r.Context()).requestID
	notified, err := h.ports.Notifications.Notify(r.Context(), repository, body, r.Header.Get(headerSignature), requestID)
	if err != nil {
		return err
	}
	faults := notified.Errors[:min(len(notified.Errors), maxListedErrors)]
	if notified.Accepted == 0 && len(faults) > 0 {
		return &notUnderstoodError{cause: core.NewError(codeNotUnderstood, faults[0].Message), violations: faults}
	}
	if faults == nil {
		faults = []core.EventError{}
	}
	h.writeJSON(w, r, http.StatusAccepted, contentTypeJSON, notifiedBody{
		Successful: true, RequestID: requestID, Accepted: notified.Accepted,
		NotUnderstood: len(notified.Errors), Faults: faults,
	})
	return nil
}
