package core

// DefaultMaxRecordBytes is the size of the largest record that is held, in bytes, unless the configuration says otherwise.
const DefaultMaxRecordBytes = 32 << 20

// Record is one record as its upstream gave it.
type Record struct {
	// ID is the analysisId or the systemId; empty when the record has none.
	ID string
	// Organization is the record's own: Song's studyId, Lyric's organization.
	Organization string
	// State is the upstream's word for the record's state, such as PUBLISHED; empty where there is none.
	State string
	// Indexable reports whether a record in this state belongs into the index.
	Indexable bool
	// Body is the record's own bytes, one JSON object without line feeds. Inside a page callback it is valid only
	// until the callback returns.
	Body []byte
	// Release, when it is not nil, releases the memory of a large Body that was fetched by itself; it must be called once
	// Body is not used any more.
	Release func()
	// TooLarge is set for a record over the size limit, whose Body is nil: what a dead letter keeps of it.
	TooLarge *DeadLetterDocument
	// HasRepositories reports whether the record has a top-level member repositories of its own, which the document's
	// replaces.
	HasRepositories bool
}

// PageInfo is what an upstream said of a page beside its records.
type PageInfo struct {
	// Rows is the number of rows that the page held, Total the number that the whole list has now.
	Rows  int
	Total int
}
