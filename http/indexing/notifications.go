package indexing

import (
	"bytes"
	"net/http"

	"tutti/http/api"
	"tutti/http/media"
	"tutti/http/problem"
	"tutti/internal/core"
)

// maxListedErrors is how many errors a response lists; an array of events may have thousands.
const maxListedErrors = 100

// notifiedBody is the 202 of a notification.
type notifiedBody struct {
	Successful bool   `json:"successful"`
	RequestID  string `json:"requestId"`
	Accepted   int    `json:"accepted"`
	// NotUnderstood counts all invalid events; Faults lists the first ones.
	NotUnderstood int               `json:"notUnderstood"`
	Faults        []core.EventError `json:"faults"`
}

// notUnderstoodError is the error of a notification without a valid event.
type notUnderstoodError struct {
	cause      *core.Error
	violations []core.EventError
}

// Error returns the message of the first invalid event.
func (e *notUnderstoodError) Error() string { return e.cause.Error() }

// Unwrap returns the Error that has the code.
func (e *notUnderstoodError) Unwrap() error { return e.cause }

// Complete adds the invalid events to a problem.
func (e *notUnderstoodError) Complete(p *problem.Problem) { p.Violations = e.violations }

// notify returns the handler that accepts a repository's notification (CONTRACT section 1). The body is passed on unchanged: the signature covers its
// bytes.
func notify(port Notifications) api.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		repository, err := api.PathParam(r, "repositoryCode", "repositoryCode")
		if err != nil {
			return err
		}
		body, err := api.ReadBody(r)
		if err != nil {
			return err
		}
		if len(bytes.Trim(body, " \t\r\n")) == 0 {
			return &core.Error{
				Code: core.CodeInvalid, Message: "the body is empty", Hint: "send one event as a JSON object, or an array of them",
			}
		}
		if err := media.JSONContent(r.Header); err != nil {
			return err
		}
		requestID := api.RequestIDOf(r)
		notified, err := port.Notify(r.Context(), repository, body, r.Header.Get(api.HeaderSignature), requestID)
		if err != nil {
			return err
		}
		faults := notified.Errors[:min(len(notified.Errors), maxListedErrors)]
		if notified.Accepted == 0 && len(faults) > 0 {
			return &notUnderstoodError{cause: core.NewError(problem.CodeNotUnderstood, faults[0].Message), violations: faults}
		}
		if faults == nil {
			faults = []core.EventError{}
		}
		return api.WriteJSON(w, http.StatusAccepted, notifiedBody{
			Successful: true, RequestID: requestID, Accepted: notified.Accepted,
			NotUnderstood: len(notified.Errors), Faults: faults,
		})
	}
}
