package core

// NotificationResult is what became of the events of one notification.
type NotificationResult struct {
	// Accepted is the number of events whose Request the queue has stored.
	Accepted int
	// Errors are the events that were not understood, each kept as a dead letter.
	Errors []EventError
}

// EventError says why one event was not understood.
type EventError struct {
	// Pointer is the event's JSON pointer in the body (RFC 6901): "" for a single event, "/3" for the fourth of an array,
	// with the member at fault behind it where there is one.
	Pointer string `json:"pointer"`
	// Message names the fault; safe to display.
	Message string `json:"message"`
	// DeadLetterID is the id of the dead letter that keeps the event, empty when it could not be kept.
	DeadLetterID string `json:"deadLetterId,omitempty"`
}
