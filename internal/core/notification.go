package core

import (
	"fmt"
	"time"
)

// TopicMessage is a message of a Kafka topic.
type TopicMessage struct {
	// Value is nil for a tombstone.
	Value     []byte
	Partition int32
	Offset    int64
	// At is the message's timestamp, a time before 1970 if it has none.
	At time.Time
	// Traceparent is the value of the header of that name (W3C Trace Context, section 3.2), as the sender wrote it.
	Traceparent string
}

// Position returns where the message is, such as "partition 3, offset 117".
func (m TopicMessage) Position() string {
	return fmt.Sprintf("partition %d, offset %d", m.Partition, m.Offset)
}

// TopicGap is a part of a Kafka topic that was removed before it was read.
type TopicGap struct {
	// Offsets is the number of offsets that were not read and are known of. There may be fewer messages than offsets.
	Offsets int64
	// Reason says what happened, as a clause that may be shown to clients.
	Reason string
}

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

// EventFormat describes the events by which a type of repository notifies of a changed record, as the names of their members.
type EventFormat struct {
	// Name is the name of the format in logs.
	Name string
	// RecordID and Organization are the members that identify the record; only events of this format have RecordID.
	RecordID, Organization string
	// Servers are the members that identify the server of the event. An event without them may be from any server.
	Servers []EventMember
	// ServerTerm is what messages call a value of Servers, such as "category"; "" if it is the code of a repository.
	ServerTerm string
	// Entity holds the name of the entity that the record is of; "" if records have none.
	Entity string
	// Data holds the record's own fields; Action is ActionDelete if the record was deleted. Both are "" if events have no such members.
	Data                 string
	Action, ActionDelete string
	// Ignored are the other members that senders are known to write.
	Ignored []string
}

// EventMember is a member of an event whose value is a string, or a number if OrNumber is set.
type EventMember struct {
	Name     string
	OrNumber bool
}
