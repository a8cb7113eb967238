package core

// NotificationResult is the result of processing the events of one notification.
type NotificationResult struct {
	// Accepted is the number of events whose Request the queue has stored.
	Accepted int
	// Errors are the events that could not be decoded, each stored as a dead letter.
	Errors []EventError
}

// EventError is the reason why one event could not be decoded.
type EventError struct {
	// Pointer is the event's JSON pointer in the body (RFC 6901): "" for a single event, "/3" for the fourth of an array,
	// followed by the invalid member if known.
	Pointer string `json:"pointer"`
	// Message describes the error; safe to display.
	Message string `json:"message"`
	// DeadLetterID is the ID of the dead letter of the event, empty if it could not be stored.
	DeadLetterID string `json:"deadLetterId,omitempty"`
}
