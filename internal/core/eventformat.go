package core

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
	// Ignored are the other members that senders are known to write.
	Ignored []string
}

// EventMember is a member of an event whose value is a string, or a number if OrNumber is set.
type EventMember struct {
	Name     string
	OrNumber bool
}
